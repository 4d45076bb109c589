"""Chapter 18: padding to captured sizes, and replays over buffers that never move."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from minisgl.attention.utils import make_positions
from minisgl.core import Batch, Phase, Req, SamplingParams
from minisgl.distributed import DistributedInfo
from minisgl.engine import Engine, EngineConfig
from minisgl.engine.graph import sizes_to_capture

ROOM = 16
Drive = Callable[..., Any]


def test_sizes() -> None:
    assert sizes_to_capture(0) == ()
    assert sizes_to_capture(3) == (1, 2, 3)
    assert sizes_to_capture(20) == (1, 2, 4, 8, 16, 20)


@pytest.fixture(params=[("torch", 1), ("fi", 4), ("fa", 4)], ids=lambda kernels: kernels[0])
def engine(model_folder: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    backend, page_size = request.param
    built = Engine(
        EngineConfig(
            model_path=str(model_folder),
            tp_info=DistributedInfo(0, 1),
            dtype=torch.float32,
            device=torch.device("cpu"),
            attention_backend=backend,
            page_size=page_size,
            max_running_req=4,
            num_page_override=4 * ROOM // page_size,
            max_seq_len_override=ROOM,
            cuda_graph_bs=(2, 4),
        )
    )
    for row in range(4):
        built.page_table[row] = torch.arange(row * ROOM, (row + 1) * ROOM)
    yield built
    built.shutdown()


def requests(lengths: list[int], first: int, cached: bool) -> list[Req]:
    return [
        Req(
            (torch.arange(length, dtype=torch.int32) * 37 + 11 * row + first) % 480 + 5,
            row,
            length - 1 if cached else 0,
            2,
            row,
            SamplingParams(),
            None,
        )
        for row, length in enumerate(lengths)
    ]


def prepare(engine: Engine, phase: Phase, reqs: list[Req], pad: bool = False) -> Batch:
    batch = Batch(reqs, phase)
    if pad:
        engine.graph_runner.pad_batch(batch)
    every = batch.padded_reqs
    batch.positions = make_positions(every, engine.device)
    batch.input_ids = torch.cat([req.input_ids[req.cached_len : req.device_len] for req in every])
    batch.out_loc = torch.cat(
        [engine.page_table[req.table_idx, req.cached_len : req.device_len] for req in every]
    )
    engine.attn_backend.prepare_metadata(batch)
    return batch


def forward(engine: Engine, batch: Batch) -> torch.Tensor:
    with torch.inference_mode(), engine.ctx.forward_batch(batch):
        return engine.model.forward()


def test_a_replay_is_the_eager_forward_batch_after_batch(engine: Engine) -> None:
    for first, lengths in enumerate(([5, 9, 2], [3], [7, 7, 7, 7], [1, 15])):
        forward(engine, prepare(engine, "prefill", requests(lengths, first, cached=False)))
        reqs = requests(lengths, first, cached=True)
        wanted = forward(engine, prepare(engine, "decode", reqs))
        batch = prepare(engine, "decode", reqs, pad=True)
        assert batch.padded_size == (2 if len(lengths) <= 2 else 4)
        with torch.inference_mode():
            got = engine.graph_runner.replay(batch)
        torch.testing.assert_close(got, wanted, atol=1e-4, rtol=0)


def test_only_decode_batches_are_padded_and_replayed(engine: Engine) -> None:
    reqs = requests([3, 4, 5], 0, cached=True)
    prefill = Batch(reqs, "prefill")
    engine.graph_runner.pad_batch(prefill)
    assert prefill.padded_size == 3
    assert not engine.graph_runner.can_run(prefill)
    assert not engine.graph_runner.can_run(
        Batch(reqs, "decode")
    )  # 3 is no captured size, and it is not padded


def test_the_scheduler_says_the_same_with_graphs(drive: Drive) -> None:
    told = []
    for sizes in ((), (2, 4)):
        scheduler = drive(cuda_graph_bs=sizes, page_size=4, overlap=True)
        for uid in range(3):
            scheduler.ask(uid, [40 + uid, 71, 82], 3 + uid)
        scheduler.run()
        told.append(scheduler.told)
    assert told[0] == told[1]
