"""Chapter 4: the KV pool and the page table.

Prints the pool's shape and what a token costs in it (for Qwen3-0.6B in bfloat16: 114,688 bytes), then a row of the
page table: pages of 4 tokens are handed out, but the row is by token position, so that a key is found without
knowing the page size.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from minisgl.distributed import DistributedInfo, set_tp_info
from minisgl.kvcache import create_kvcache_pool
from minisgl.kvcache.mha_pool import MHAKVCache
from minisgl.models.config import ModelConfig
from minisgl.scheduler.table import TableManager
from minisgl.utils.misc import div_ceil

QWEN3_0_6B = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
}
PAGE_SIZE, PAGES = 4, 8


def main() -> None:
    set_tp_info(DistributedInfo(0, 1))
    config = ModelConfig.from_hf(QWEN3_0_6B)
    a_token = MHAKVCache.bytes_per_token(config, torch.bfloat16)
    print(
        f"Qwen3-0.6B，bf16：一个 token 的 KV 占 {a_token:,} 字节；4096 个 token 占 {4096 * a_token / 2**20:.0f} MiB"
    )

    small = ModelConfig.from_hf(
        {**QWEN3_0_6B, "num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 4}
    )
    pool = create_kvcache_pool(small, PAGES, PAGE_SIZE, torch.float32, torch.device("cpu"))
    print(f"小池子一层的键: [页, 页内, KV 头, 维] = {list(pool.k_cache(0).shape)}")

    table = TableManager(2, torch.zeros(2, 16, dtype=torch.int32))
    row, length = table.allocate(), 10
    pages = torch.tensor([5, 0, 7], dtype=torch.int32)[: div_ceil(length, PAGE_SIZE)] * PAGE_SIZE
    table.write_pages(row, 0, pages, PAGE_SIZE)
    print(f"{length} 个 token 要 {len(pages)} 页，页首在池里的位置 {pages.tolist()}（页大小 {PAGE_SIZE}）")
    print(f"页表第 {row} 行: {table.page_table[row, :length].tolist()}")

    out_loc = table.page_table[row, :length]
    k, v = torch.randn(length, 2, 4), torch.randn(length, 2, 4)
    pool.store_kv(k, v, out_loc, layer_id=1)
    read = pool.k_cache(1).flatten(0, 1)[out_loc.long()]
    print("按位置写入，按位置读回相同:", torch.equal(read, k))
    print(
        "第 9 个 token 的键在",
        f"页 {int(out_loc[9]) // PAGE_SIZE} 的第 {int(out_loc[9]) % PAGE_SIZE} 格:",
        end=" ",
    )
    print(torch.equal(pool.k_cache(1)[int(out_loc[9]) // PAGE_SIZE, int(out_loc[9]) % PAGE_SIZE], k[9]))
    table.free(row)
    try:
        table.free(row)
    except RuntimeError as error:
        print("还两次:", error)


if __name__ == "__main__":
    main()
