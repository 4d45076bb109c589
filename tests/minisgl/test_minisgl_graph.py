"""Decode graphs: padding, static buffers, and that a replay sees nothing but what was copied into them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from minisgl.core import Batch, Req, SamplingParams
from minisgl.distributed import DistributedInfo
from minisgl.engine import EngineConfig
from minisgl.engine.graph import sizes_to_capture
from tests.minisgl.greedy import build_engine, generate, prepare

BACKENDS = [("torch", 1), ("torch", 4), ("fi", 1), ("fi", 4), ("fa", 1), ("fa", 4), ("fa,fi", 4)]


def test_sizes() -> None:
    assert sizes_to_capture(0) == ()
    assert sizes_to_capture(1) == (1,)
    assert sizes_to_capture(6) == (1, 2, 4, 6)
    assert sizes_to_capture(24) == (1, 2, 4, 8, 16, 24)
    config: dict[str, Any] = {
        "tp_info": DistributedInfo(0, 1),
        "dtype": torch.float32,
        "device": torch.device("cpu"),
    }
    assert EngineConfig("m", **config).graph_sizes == ()
    assert EngineConfig("m", cuda_graph_bs=(4, 1, 4), **config).graph_sizes == (1, 4)
    assert EngineConfig("m", cuda_graph_max_bs=2, **config).graph_sizes == (1, 2)
    for wrong in ({"cuda_graph_bs": (0,)}, {"cuda_graph_max_bs": -1}):
        with pytest.raises(ValueError, match=r"EngineConfig\.cuda_graph"):
            EngineConfig("m", **config, **wrong)


def decoding(engine: Any, lengths: list[int]) -> list[Req]:
    """Requests whose last of `lengths` tokens is computed next; tokens and places differ from call to call."""
    reqs = []
    for row, length in enumerate(lengths):
        ids = torch.randint(4, 500, (length,), dtype=torch.int32)
        order = torch.randperm(64 // engine.config.page_size)[: -(-length // engine.config.page_size)]
        starts = (order + row * (64 // engine.config.page_size)) * engine.config.page_size
        places = (starts.unsqueeze(1) + torch.arange(engine.config.page_size)).flatten().int()
        engine.page_table[row, : len(places)] = places
        reqs.append(Req(ids, row, 0, 4, row, SamplingParams(), None))
    batch = prepare(engine, "prefill", reqs)
    with torch.inference_mode(), engine.ctx.forward_batch(batch):
        engine.model.forward()
    for req in reqs:
        req.cached_len = req.device_len - 1
    return reqs


@pytest.mark.parametrize(("backend", "page_size"), BACKENDS)
def test_a_replay_is_the_eager_forward(tiny_qwen3: Path, backend: str, page_size: int) -> None:
    """Bug: one of the buffers (ids, positions, places, metadata) is not refreshed, and an old batch shows."""
    torch.manual_seed(0)
    engine = build_engine(tiny_qwen3, backend, page_size, cuda_graph_bs=(1, 2, 4, 6))
    for lengths in ([5], [9, 2, 30], [3, 3, 3, 3], [40, 1 + page_size], [7, 8, 9, 10, 11], [2]):
        reqs = decoding(engine, lengths)
        eager = prepare(engine, "decode", reqs)
        with torch.inference_mode(), engine.ctx.forward_batch(eager):
            wanted = engine.model.forward()
        padded = Batch(reqs, "decode")
        engine.graph_runner.pad_batch(padded)
        assert padded.padded_size == next(size for size in (1, 2, 4, 6) if size >= len(lengths))
        batch = prepare(engine, "decode", reqs, padding=padded.padded_size - len(reqs))
        assert engine.graph_runner.can_run(batch)
        with torch.inference_mode():
            got = engine.graph_runner.replay(batch).clone()
        assert got.shape == wanted.shape
        torch.testing.assert_close(got, wanted, atol=2e-5, rtol=0)


def test_what_has_no_graph_runs_as_it_is(tiny_qwen3: Path) -> None:
    engine = build_engine(tiny_qwen3, cuda_graph_bs=(2,))
    reqs = decoding(engine, [4, 5, 6])
    batch = Batch(reqs, "decode")
    engine.graph_runner.pad_batch(batch)
    assert batch.padded_reqs == reqs
    assert not engine.graph_runner.can_run(batch)
    assert not engine.graph_runner.can_run(Batch(reqs[:2], "prefill"))
    assert engine.graph_runner.can_run(Batch(reqs[:2], "decode"))


def test_padding_writes_into_the_dummy_page_only(tiny_qwen3: Path) -> None:
    """Bug: dummies store keys at position 0, which is a page that some request owns."""
    engine = build_engine(tiny_qwen3, page_size=4, cuda_graph_bs=(8,))
    pool = engine.ctx.kv_cache.k_cache(0)
    pool.zero_()
    reqs = decoding(engine, [6])
    before = pool.clone()
    batch = prepare(engine, "decode", reqs, padding=7)
    engine.forward_batch(batch, engine.sampler.prepare(batch))
    changed = (pool != before).flatten(1).any(dim=1).nonzero().flatten().tolist()
    mine = int(engine.page_table[0, 5]) // 4
    assert set(changed) <= {mine, engine.num_pages}
    assert engine.num_pages in changed


@pytest.mark.parametrize(("backend", "page_size"), BACKENDS)
def test_generates_the_same_with_and_without(tiny_qwen3: Path, backend: str, page_size: int) -> None:
    prompts = [[40, 71, 82, 303, 9], [499], [5, 6, 7, 8, 9, 10, 11, 12]]
    engine = build_engine(tiny_qwen3, backend, page_size)
    wanted = generate(engine, prompts, 12)
    engine.shutdown()
    engine = build_engine(tiny_qwen3, backend, page_size, cuda_graph_bs=(5,))
    assert generate(engine, prompts, 12, padding=2) == wanted
