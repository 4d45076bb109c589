"""Chapter 1: the lengths of a request, step by step.

A prompt of 5 tokens, 2 of them cached by an earlier request, and at most 4 tokens of answer. Each row is what the
next forward would see; after the last one nothing is left to generate.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from minisgl.core import Batch, Req, SamplingParams


def main() -> None:
    req = Req(
        input_ids=torch.tensor([785, 6722, 315, 9625, 374], dtype=torch.int32),
        table_idx=0,
        cached_len=2,
        output_len=4,
        uid=0,
        sampling_params=SamplingParams(),
        cache_handle=None,
    )
    print("步  阶段      cached  device  extend  remain  这一步算的 token")
    step = 0
    while req.can_decode:
        step += 1
        batch = Batch([req], "prefill" if step == 1 else "decode")
        computed = req.input_ids[req.cached_len : req.device_len].tolist()
        print(
            f"{step:>2}  {batch.phase:<8}{req.cached_len:>8}{req.device_len:>8}"
            f"{req.extend_len:>8}{req.remain_len:>8}  {computed}"
        )
        req.complete_one()  # what the engine does after a forward
        req.append_host(torch.tensor([100 + step], dtype=torch.int32))  # what the sampler would have said
    print(f"完成：{len(req.input_ids)} 个 token，其中 {len(req.input_ids) - req.prompt_len} 个是生成的")
    try:
        Req(req.input_ids, 0, len(req.input_ids), 1, 1, SamplingParams(), None)
    except ValueError as error:
        print("全部命中也要算一个:", error)


if __name__ == "__main__":
    main()
