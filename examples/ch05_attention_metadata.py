"""Chapter 5: what an attention backend is told about a batch, and whether the reference backend is right.

Two requests: one with 3 of its 5 tokens cached, one with nothing cached. Printed are the numbers that every backend
derives from them, and the difference between the paged reference backend and dense attention written out.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from minisgl.attention import create_attention_backend
from minisgl.attention.utils import make_indptr, make_positions
from minisgl.core import Batch, Context, Req, SamplingParams, set_global_ctx
from minisgl.distributed import DistributedInfo, set_tp_info
from minisgl.kvcache import create_kvcache_pool
from minisgl.models.config import ModelConfig

CPU = torch.device("cpu")
PAGE_SIZE = 4
LENGTHS, CACHED = [5, 6], [3, 0]
CONFIG = ModelConfig.from_hf(
    {
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 100,
        "max_position_embeddings": 64,
    }
)


def dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention of the last len(q) of len(k) tokens, from its definition: [n, heads, D]."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = torch.einsum("nhd,khd->hnk", q, k) * q.shape[-1] ** -0.5
    at = torch.arange(len(k) - len(q), len(k)).unsqueeze(1)
    scores = scores.masked_fill(torch.arange(len(k)) > at, float("-inf"))
    return torch.einsum("hnk,khd->nhd", scores.softmax(-1), v)


def main() -> None:
    torch.manual_seed(0)
    set_tp_info(DistributedInfo(0, 1))
    ctx = Context(PAGE_SIZE)
    set_global_ctx(ctx)
    ctx.kv_cache = create_kvcache_pool(CONFIG, 8, PAGE_SIZE, torch.float32, CPU)
    ctx.page_table = torch.zeros(2, 8, dtype=torch.int32)
    ctx.page_table[0] = torch.tensor([20, 21, 22, 23, 4, 5, 6, 7])  # pages 5 and 1
    ctx.page_table[1] = torch.tensor([12, 13, 14, 15, 28, 29, 30, 31])  # pages 3 and 7
    backend = create_attention_backend("torch", CONFIG, ctx.kv_cache)

    reqs = [
        Req(torch.arange(length, dtype=torch.int32), row, cached, 2, row, SamplingParams(), None)
        for row, (length, cached) in enumerate(zip(LENGTHS, CACHED, strict=True))
    ]
    batch = Batch(reqs, "prefill")
    batch.out_loc = torch.cat([ctx.page_table[r.table_idx, r.cached_len : r.device_len] for r in reqs])
    backend.prepare_metadata(batch)
    print("新 token 数:", [r.extend_len for r in reqs], " KV 长度:", [r.device_len for r in reqs])
    print("cu_seqlens_q:", make_indptr([r.extend_len for r in reqs], CPU).tolist())
    print("cu_seqlens_k:", make_indptr([r.device_len for r in reqs], CPU).tolist())
    print("positions   :", make_positions(reqs, CPU).tolist())
    print("out_loc     :", batch.out_loc.tolist())
    print("last indices:", batch.attn_metadata.get_last_indices(2).tolist())

    keys = [torch.randn(length, 2, 16) for length in LENGTHS]
    values = [torch.randn(length, 2, 16) for length in LENGTHS]
    cached = ctx.page_table[0, : CACHED[0]]
    ctx.kv_cache.store_kv(keys[0][: CACHED[0]], values[0][: CACHED[0]], cached, 0)
    q = torch.randn(sum(r.extend_len for r in reqs), 4, 16)
    new_k = torch.cat([k[c:] for k, c in zip(keys, CACHED, strict=True)])
    new_v = torch.cat([v[c:] for v, c in zip(values, CACHED, strict=True)])
    got = backend.forward(q, new_k, new_v, 0, batch)
    parts = q.split([r.extend_len for r in reqs])
    wanted = torch.cat([dense(*one) for one in zip(parts, keys, values, strict=True)])
    print(f"与稠密注意力的最大误差: {(got - wanted).abs().max().item():.1e}")


if __name__ == "__main__":
    main()
