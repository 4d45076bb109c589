"""Chapter 18: a decode step recorded once and replayed, over buffers that never move.

Prints the sizes that are captured, how batches are padded to them, and how far a replay is from the eager forward
of the same batch. On a GPU the graphs are CUDA graphs; on the CPU a graph is a recorded call that sees nothing
but the same static buffers. What happens when one of them is not refreshed is shown last.
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
from minisgl.engine.graph import sizes_to_capture  # noqa: E402
from minisgl.utils.device import default_device  # noqa: E402

LENGTHS = [5, 9, 2, 7, 11]
ROOM = 16  # tokens a request


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("qwen3"))


def make_requests(count: int, cached: bool) -> list[Req]:
    return [
        Req(
            input_ids=(torch.arange(length, dtype=torch.int32) * 37 + 11 * row) % 480 + 5,
            table_idx=row,
            cached_len=length - 1 if cached else 0,
            output_len=2,
            uid=row,
            sampling_params=SamplingParams(),
            cache_handle=None,
        )
        for row, length in enumerate(LENGTHS[:count])
    ]


def prepare(engine: Engine, phase: Phase, reqs: list[Req], pad: bool = False) -> Batch:
    batch = Batch(reqs, phase)
    if pad:
        engine.graph_runner.pad_batch(batch)
    every = batch.padded_reqs
    batch.positions = make_positions(every, engine.device)
    batch.input_ids = torch.cat([r.input_ids[r.cached_len : r.device_len] for r in every]).to(engine.device)
    batch.out_loc = torch.cat([engine.page_table[r.table_idx, r.cached_len : r.device_len] for r in every])
    engine.attn_backend.prepare_metadata(batch)
    return batch


def forward(engine: Engine, batch: Batch) -> torch.Tensor:
    with torch.inference_mode(), engine.ctx.forward_batch(batch):
        return engine.model.forward()


def replay(engine: Engine, batch: Batch) -> torch.Tensor:
    with torch.inference_mode():
        return engine.graph_runner.replay(batch).clone()


def main() -> None:
    print(f"最大 24 时要录制的批大小: {list(sizes_to_capture(24))}")
    engine = Engine(
        EngineConfig(
            model_path=model_folder(),
            tp_info=DistributedInfo(0, 1),
            dtype=torch.float32,
            device=default_device(),
            attention_backend="torch",
            max_running_req=len(LENGTHS),
            num_page_override=len(LENGTHS) * ROOM,
            max_seq_len_override=ROOM,
            cuda_graph_bs=(1, 2, 4, 8),
        )
    )
    print(f"本机录制: {engine.graph_runner.sizes}（设备 {engine.device.type}）")
    for row in range(len(LENGTHS)):
        engine.page_table[row] = torch.arange(row * ROOM, (row + 1) * ROOM)
    forward(engine, prepare(engine, "prefill", make_requests(len(LENGTHS), cached=False)))

    print("请求数  补到  浪费的行  逐个执行与重放的最大误差  下一个 token 相同")
    for count in range(1, len(LENGTHS) + 1):
        reqs = make_requests(count, cached=True)
        eager = forward(engine, prepare(engine, "decode", reqs))
        padded = prepare(engine, "decode", reqs, pad=True)
        got = replay(engine, padded)
        same = bool((got.argmax(-1) == eager.argmax(-1)).all())
        print(
            f"{count:>4}{padded.padded_size:>8}{padded.padded_size - count:>8}"
            f"{difference(got, eager):>18}{same!s:>20}"
        )

    reqs = make_requests(3, cached=True)
    batch = prepare(engine, "decode", reqs, pad=True)
    right = replay(engine, batch)
    for name in ("input_ids", "positions"):
        stale = prepare(engine, "decode", reqs, pad=True)
        setattr(stale, name, torch.zeros_like(getattr(stale, name)))
        print(f"{name} 的缓冲区没有更新时，误差 {difference(replay(engine, stale), right)}")
    engine.shutdown()


def difference(a: torch.Tensor, b: torch.Tensor) -> str:
    return f"{(a - b).abs().max().item():.2e}"


if __name__ == "__main__":
    main()
