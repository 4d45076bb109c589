"""Chapter 6: the engine, and its first sentence.

Prints how the memory is planned, what the model says (a model with random weights, unless MINISGL_MODEL names a real
one), and whether it says the same when keys and values are taken from the cache and when everything is computed
anew at each step.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from minisgl.attention.utils import make_positions  # noqa: E402
from minisgl.core import Batch, Phase, Req, SamplingParams  # noqa: E402
from minisgl.distributed import DistributedInfo  # noqa: E402
from minisgl.engine import Engine, EngineConfig  # noqa: E402
from minisgl.kvcache.mha_pool import MHAKVCache  # noqa: E402
from minisgl.utils.hf import load_tokenizer  # noqa: E402

TEXT = "A request is a prompt and the tokens that follow it."
NEW_TOKENS = 12


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("qwen3"))


def step(engine: Engine, phase: Phase, req: Req) -> int:
    batch = Batch([req], phase)
    batch.input_ids = req.input_ids[req.cached_len : req.device_len]
    batch.positions = make_positions([req], engine.device)
    batch.out_loc = engine.page_table[req.table_idx, req.cached_len : req.device_len]
    engine.attn_backend.prepare_metadata(batch)
    output = engine.forward_batch(batch, engine.sampler.prepare(batch))
    output.copy_done.synchronize()
    req.append_host(output.next_tokens_cpu)
    return int(output.next_tokens_cpu[0])


def generate(engine: Engine, prompt: list[int], use_cache: bool) -> list[int]:
    ids = torch.tensor(prompt, dtype=torch.int32)
    req = Req(ids, 0, 0, NEW_TOKENS, 0, SamplingParams(), None)
    said = [step(engine, "prefill", req)]
    while req.can_decode:
        if not use_cache:
            req.cached_len = 0  # forget: every token is computed anew
        said.append(step(engine, "decode" if use_cache else "prefill", req))
    return said


def main() -> None:
    config = EngineConfig(
        model_path=model_folder(),
        tp_info=DistributedInfo(0, 1),
        dtype=torch.float32,
        device=torch.device("cpu"),
        page_size=4,
        max_running_req=4,
        num_page_override=64,
        max_seq_len_override=128,
    )
    engine = Engine(config)
    page_bytes = MHAKVCache.bytes_per_token(config.model_config, config.dtype) * config.page_size
    print("内存规划:")
    print(
        f"  KV 池: {engine.num_pages} 页 × {config.page_size} 个 token，每页 {page_bytes:,} 字节，另有一页给填充用"
    )
    print(f"  页表: {list(engine.page_table.shape)}（{config.max_running_req} 个请求，再加填充用的一行）")
    print(f"  一个请求最多 {engine.max_seq_len} 个 token")

    engine.page_table[0] = torch.arange(128, dtype=torch.int32)
    tokenizer = load_tokenizer(config.model_folder)
    prompt = tokenizer.encode(TEXT)
    with_cache = generate(engine, prompt, use_cache=True)
    without = generate(engine, prompt, use_cache=False)
    print(f"提示词 {len(prompt)} 个 token: {TEXT!r}")
    print("说出:", with_cache, repr(tokenizer.decode(with_cache)))
    print("用缓存与不用缓存相同:", with_cache == without)
    engine.shutdown()


if __name__ == "__main__":
    main()
