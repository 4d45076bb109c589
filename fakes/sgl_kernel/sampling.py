"""Filters of sampling in sgl_kernel (`sgl_kernel/sampling.py` of sglang-kernel 0.4.6), which calls flashinfer's."""

from __future__ import annotations

import torch
from flashinfer import sampling


def top_k_renorm_probs(probs: torch.Tensor, top_k: torch.Tensor | int) -> torch.Tensor:
    """`flashinfer.top_k_renorm_probs`."""
    return sampling.top_k_renorm_probs(probs, top_k)


top_k_renorm_prob = top_k_renorm_probs


def top_p_renorm_probs(probs: torch.Tensor, top_p: torch.Tensor | float) -> torch.Tensor:
    """`flashinfer.top_p_renorm_probs`."""
    return sampling.top_p_renorm_probs(probs, top_p)


top_p_renorm_prob = top_p_renorm_probs

__all__ = ["top_k_renorm_prob", "top_k_renorm_probs", "top_p_renorm_prob", "top_p_renorm_probs"]
