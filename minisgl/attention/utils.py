"""Arithmetic on the lengths of a batch that more than one part needs."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minisgl.core import Req
from minisgl.utils.device import pin


def make_indptr(lengths: Sequence[int], device: torch.device) -> torch.Tensor:
    """Where each stretch of a concatenation begins, and where the last one ends.

    [2, 3] -> [0, 2, 5]: int32 [len(lengths) + 1] on the CPU, page-locked if it is bound for a GPU. Stretch i
    is `x[indptr[i] : indptr[i + 1]]`; the same numbers are called cu_seqlens elsewhere.
    """
    starts = torch.tensor([0, *lengths], dtype=torch.int32, pin_memory=pin(device))
    return starts.cumsum_(dim=0)


def make_positions(reqs: Sequence[Req], device: torch.device) -> torch.Tensor:
    """Place of each new token in its own sequence, request after request: int32 [sum of extend_len]."""
    total = sum(req.extend_len for req in reqs)
    host = torch.empty(total, dtype=torch.int32, pin_memory=pin(device))
    at = 0
    for req in reqs:
        torch.arange(req.cached_len, req.device_len, out=host[at : at + req.extend_len])
        at += req.extend_len
    return host.to(device, non_blocking=True)


def require_kernels(package: str, backend: str, error: ImportError) -> ImportError:
    """The error for a backend whose kernels cannot be imported: what is missing, and the three ways on."""
    return ImportError(
        f"attention backend {backend!r} needs the package {package}, which cannot be imported ({error}). "
        f"On an NVIDIA GPU install {package}; without one, put a stand-in with the same interface on "
        "the path; or choose attention_backend='torch'."
    )
