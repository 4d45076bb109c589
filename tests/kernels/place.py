"""Where the kernels under test run: fakes on the CPU, or the real ones on a GPU with KERNELS=real; and what "agree"
means for each type.

Tests make their data with `rng` on the CPU (the same on both sides), move it with `there`, and hold results to a
float64 computation of their own with `close`.
"""

from __future__ import annotations

import os

import torch

REAL = os.environ.get("KERNELS", "fake") == "real"
DEVICE = torch.device("cuda" if REAL else "cpu")
HALF = (torch.float16, torch.bfloat16)
FLOATS = HALF if REAL else (*HALF, torch.float32)
"""Types to run attention in: float32 is the fakes' alone."""

OUT_TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-5, torch.float64: 1e-12}
LSE_TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1e-2, torch.float32: 1e-5}
"""Absolute, for inputs drawn from a standard normal distribution: the real kernels' own rounding."""


def rng(seed: int) -> torch.Generator:
    """A CPU generator: the same numbers with fakes and with real kernels."""
    return torch.Generator().manual_seed(seed)


def normal(generator: torch.Generator, *shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Standard normal numbers of a shape, rounded to `dtype`, on the kernels' device."""
    return torch.randn(*shape, generator=generator).to(dtype).to(DEVICE)


def i32(values: list[int] | tuple[int, ...]) -> torch.Tensor:
    """int32 tensor on the kernels' device."""
    return torch.tensor(list(values), dtype=torch.int32, device=DEVICE)


def there(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on the kernels' device."""
    return tensor.to(DEVICE)


def workspace(megabytes: int = 128) -> torch.Tensor:
    """A float workspace: uint8 [bytes], zeroed. Small for the fakes would do, but what a GPU needs is asked for."""
    return torch.zeros(megabytes << 20, dtype=torch.uint8, device=DEVICE)


def close(
    got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype, *, lse: bool = False, loose: float = 1.0
) -> None:
    """Hold a result of a kernel that ran in `dtype` to `want` (float64); -inf must stand at the same places.

    loose: factor of the absolute tolerance, for what a GPU approximates.
    """
    got, want = got.detach().cpu().double(), want.detach().cpu().double()
    assert got.shape == want.shape, (got.shape, want.shape)
    blind = torch.isneginf(want)
    assert torch.equal(torch.isneginf(got), blind)
    bound = loose * (LSE_TOLERANCE if lse else OUT_TOLERANCE)[dtype]
    rounding = torch.finfo(dtype).eps
    torch.testing.assert_close(got[~blind], want[~blind], atol=bound, rtol=rounding)
