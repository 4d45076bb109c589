"""What a kernel computes that was compiled for other settings than the batch's: after `fast_decode_plan`, or with a head_dim
that isn't the declared or planned one; in faithful mode.

Measured on an H200: a kernel without a soft cap doesn't apply one, CUDA-core decode without a window neither; a tensor-core
kernel without a window, and heads of another size than the kernel's, give wrong numbers. A kernel with a cap that gets none
divides by it: tensor cores return NaN. Which numbers they are is not known where this says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from fake_kernels.outcomes import Path
from fake_kernels.reference import Layout, Request, attend
from fake_kernels.variants import Variant

from flashinfer._options import caps

_NO_CAP = 1e-30
"""For CUDA-core decode with a cap of 0: the scores are divided by it and multiplied by it, so that all weigh the same."""


def window_and_cap(compiled: Mapping[str, Any], path: Path, window: int, cap: float) -> tuple[int, float]:
    """The window and the soft cap that the kernel applies when it is asked for these."""
    if compiled["window_left"] == -1 and window != -1:
        # The tensor-core kernel computed neither with the window nor without it: here it sees twice as far.
        window = 2 * window + 1 if path == "tc" else -1
    if caps(compiled["logits_soft_cap"]):
        return window, cap or _NO_CAP
    return window, 0.0


def attend_as_compiled(
    head_dim: int,
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    requests: Sequence[Request],
    variant: Variant,
    *,
    layout: Layout,
    with_lse: bool,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """`attend` with the head_dim of the kernel. Smaller heads are read with what lies behind each, and as much is written;
    of larger ones only the first part is read and written, and the rest of the result stays as it was: 0 here."""
    if head_dim < q.shape[-1]:
        part = (x[..., :head_dim].contiguous() for x in (q, k_cache, v_cache))
        out, lse = attend(*part, requests, variant, layout=layout, with_lse=with_lse)
        return torch.nn.functional.pad(out, (0, v_cache.shape[-1] - out.shape[-1])), lse
    wide = (_as_wide(x, head_dim) for x in (q, k_cache, v_cache))
    out, lse = attend(*wide, requests, variant, layout=layout, with_lse=with_lse)
    return out[..., : q.shape[-1]].contiguous(), lse


def _as_wide(x: torch.Tensor, head_dim: int) -> torch.Tensor:
    """x with `head_dim` entries in its last dimension, as they follow in memory; 0 behind its end."""
    x = x.contiguous()
    memory = torch.cat([x.flatten(), x.new_zeros(head_dim - x.shape[-1])])
    return memory.as_strided((*x.shape[:-1], head_dim), x.stride())
