import torch


def rotate(x, positions, base, interleaved):
    half = x.shape[-1] // 2
    exponents = torch.arange(0, x.shape[-1], 2, dtype=torch.float32) / x.shape[-1]
    angles = torch.outer(positions.float(), 1.0 / base**exponents)
    cos, sin = angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)
    first, second = (
        (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(half), slice(half, None))
    )
    a, b = x[..., first].float().clone(), x[..., second].float().clone()
    x[..., first] = (a * cos - b * sin).to(x.dtype)
    x[..., second] = (b * cos + a * sin).to(x.dtype)
    return x
