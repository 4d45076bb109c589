"""What a checker finds out about paged metadata by using it: it plans and runs its own fake kernel with a submission's
numbers, on a pool of its own, and holds the result against the engine's torch backend given the same requests.

Used by the `check.py` of problems about metadata. Runs in the checker's process, on inputs and outputs that are data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import torch

from judge.core.verdict import Mismatch

QO_HEADS, KV_HEADS, HEAD_DIM = 2, 1, 64
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Request:
    """A request as the page table knows it: its row, how many of its tokens are computed now, how many there are."""

    row: int
    extend_len: int
    seq_len: int


@cache
def _noise(tokens: int) -> torch.Tensor:
    """float32 [2, tokens, KV_HEADS, HEAD_DIM], always the same."""
    return torch.randn(2, tokens, KV_HEADS, HEAD_DIM, generator=torch.Generator().manual_seed(1))


def _pool(tokens: int) -> torch.Tensor:
    """Keys and values for at least `tokens` places; the size is rounded up, so that few are ever made."""
    size = 256
    while size < tokens:
        size *= 2
    return _noise(size)


@cache
def _config() -> Any:
    from minisgl.models.config import ModelConfig, RotaryConfig

    return ModelConfig(
        architecture="evidence",
        num_layers=1,
        num_qo_heads=QO_HEADS,
        num_kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        hidden_size=QO_HEADS * HEAD_DIM,
        intermediate_size=HEAD_DIM,
        vocab_size=1,
        rms_norm_eps=1e-6,
        rotary_config=RotaryConfig(head_dim=HEAD_DIM, max_position=1, base=1e4),
        tie_word_embeddings=True,
        qkv_bias=False,
        o_bias=False,
        qk_norm=False,
    )


class PoolView:
    """The KV pool that the torch backend reads: one layer of pages of one token."""

    def __init__(self, noise: torch.Tensor) -> None:
        self.k, self.v = noise[0].unsqueeze(1), noise[1].unsqueeze(1)
        self.device, self.dtype = noise.device, noise.dtype

    def k_cache(self, layer_id: int) -> torch.Tensor:
        return self.k

    def v_cache(self, layer_id: int) -> torch.Tensor:
        return self.v

    def store_kv(self, k: torch.Tensor, v: torch.Tensor, out_loc: torch.Tensor, layer_id: int) -> None:
        """Nothing to store: the keys and values of the new tokens lie in the pool already."""


@lru_cache(maxsize=256)
def queries(rows: int) -> torch.Tensor:
    """float32 [rows, QO_HEADS, HEAD_DIM], always the same for the same number of rows."""
    return torch.randn(rows, QO_HEADS, HEAD_DIM, generator=torch.Generator().manual_seed(2))


def reference_attention(requests: Sequence[Request], page_table: torch.Tensor) -> torch.Tensor:
    """What the engine's torch backend gives for these requests: float32 [new tokens, QO_HEADS, HEAD_DIM]."""
    from minisgl.attention.torch_backend import TorchBackend
    from minisgl.core import Batch, Context, Req, SamplingParams, reset_global_ctx, set_global_ctx

    pool: Any = PoolView(_pool(int(page_table.max()) + 1))
    reset_global_ctx()
    set_global_ctx(Context(page_size=1, page_table=page_table))
    try:
        backend = TorchBackend(_config(), pool)
        reqs = [
            Req(
                input_ids=torch.zeros(r.seq_len, dtype=torch.int32),
                table_idx=r.row,
                cached_len=r.seq_len - r.extend_len,
                output_len=1,
                uid=i,
                sampling_params=SamplingParams(),
                cache_handle=None,
            )
            for i, r in enumerate(requests)
        ]
        batch = Batch(reqs=reqs, phase="prefill")
        batch.out_loc = torch.zeros(0, dtype=torch.int32)
        backend.prepare_metadata(batch)
        q = queries(sum(r.extend_len for r in requests))
        result: torch.Tensor = backend.forward(q, q, q, 0, batch)
        return result
    finally:
        reset_global_ctx()


def paged_cache(page_table: torch.Tensor, page_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The same pool as pages: (K, V), each [pages, page_size, KV_HEADS, HEAD_DIM]."""
    noise = _pool(int(page_table.max()) + 1)
    pages = (int(page_table.max()) + page_size) // page_size
    k, v = (x[: pages * page_size].view(pages, page_size, KV_HEADS, HEAD_DIM) for x in noise)
    return k, v


def run_kernel(
    use: Callable[[], torch.Tensor],
    want: torch.Tensor,
    names: Mapping[str, str],
    tolerance: float = TOLERANCE,
) -> list[Mismatch]:
    """Call `use`, which plans and runs a fake wrapper, and compare with `want`.

    `names` maps the kernel's argument names to the fields of the answer. A refusal is the mismatch `kernel_error`, with
    what the real kernel would have done; another result than the reference's is `attention`.
    """
    from fake_kernels.errors import KernelError

    try:
        got = use()
    except KernelError as error:
        field = names.get(error.argument, error.argument)
        text = {
            "zh": f"{error.what['zh']} 真实的 kernel：{error.real['zh']}",
            "en": f"{error.what['en']} The real kernel: {error.real['en']}",
        }
        return [Mismatch("kernel_error", field, {"error": error.code, "text": text})]
    if got.shape != want.shape or not torch.allclose(got, want, rtol=0.0, atol=tolerance):
        return [Mismatch("attention", "", {})]
    return []
