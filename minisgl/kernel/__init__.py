"""Operations that are worth a kernel of their own. Callers import them from here and need not know which
implementation they get.

On the CPU it is plain torch. On a GPU, store_kv and embedding_lookup are CUDA code of ours, compiled when the
first of them is asked for; where that cannot be done (an early chapter's tree, no compiler), they are plain
torch again, and the log says why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch

from minisgl.kernel import torch_ops
from minisgl.kernel.torch_ops import common_prefix_len, linear, pack_linear_weight
from minisgl.utils.logger import init_logger
from minisgl.utils.registry import Entry, Registry

logger = init_logger(__name__)

_COMPILED = Registry("kernels", {"cuda": Entry("minisgl.kernel.cuda_ext:load_ops", 19)})


class Ops(NamedTuple):
    """One implementation of the two operations below."""

    store_kv: Callable[..., None]
    embedding_lookup: Callable[..., torch.Tensor]


class KernelBuildError(RuntimeError):
    """The CUDA code cannot be compiled or loaded here; the text says what stood in the way."""


TORCH_OPS = Ops(torch_ops.store_kv, torch_ops.embedding_lookup)


@cache
def ops_for(device_type: str) -> Ops:
    """The implementation for tensors on "cuda" or "cpu", chosen once a process."""
    if device_type != "cuda":
        return TORCH_OPS
    try:
        compiled: Ops = _COMPILED.load("cuda")()
    except NotImplementedError:  # this chapter's tree has no kernels of its own yet
        return TORCH_OPS
    except KernelBuildError as error:
        logger.warning("store_kv and embedding_lookup run in plain torch: %s", error)
        return TORCH_OPS
    return compiled


def store_kv(
    k_cache: torch.Tensor, v_cache: torch.Tensor, out_loc: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> None:
    """Write each token's key and value to its place in the pool; see torch_ops.store_kv."""
    ops_for(k_cache.device.type).store_kv(k_cache, v_cache, out_loc, k, v)


def embedding_lookup(
    weight: torch.Tensor, ids: torch.Tensor, vocab_range: tuple[int, int] | None = None
) -> torch.Tensor:
    """Rows of an embedding, or of this rank's part of it; see torch_ops.embedding_lookup."""
    return ops_for(weight.device.type).embedding_lookup(weight, ids, vocab_range)


__all__ = [
    "TORCH_OPS",
    "KernelBuildError",
    "Ops",
    "common_prefix_len",
    "embedding_lookup",
    "linear",
    "ops_for",
    "pack_linear_weight",
    "store_kv",
]
