import torch


def rotate(x, positions, base, interleaved):
    half = x.shape[-1] // 2
    exponents = torch.arange(half, dtype=torch.float32) / x.shape[-1]
    angles = torch.outer(positions.float(), 1.0 / base**exponents)
    cos, sin = angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(half), slice(half, None))
    wide = x.float()
    a, b = wide[..., first], wide[..., second]
    out = torch.empty_like(wide)
    out[..., first] = a * cos - b * sin
    out[..., second] = b * cos + a * sin
    return out.to(x.dtype)
