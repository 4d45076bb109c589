"""Chapter 6: an engine that says the same with its cache and without, and samples as it is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from minisgl.attention.utils import make_positions
from minisgl.core import Batch, Phase, Req, SamplingParams
from minisgl.distributed import DistributedInfo, try_get_tp_info
from minisgl.engine import Engine, EngineConfig
from minisgl.engine.sample import Sampler, filter_probs

PROMPT = [40, 71, 82, 303, 9]


@pytest.fixture
def engine(model_folder: Path) -> Iterator[Engine]:
    built = Engine(
        EngineConfig(
            model_path=str(model_folder),
            tp_info=DistributedInfo(0, 1),
            dtype=torch.float32,
            device=torch.device("cpu"),
            page_size=4,
            max_running_req=2,
            num_page_override=16,
            max_seq_len_override=32,
        )
    )
    for row in range(2):
        built.page_table[row] = torch.arange(32 * row, 32 * row + 32)
    yield built
    built.shutdown()


def step(engine: Engine, phase: Phase, reqs: list[Req]) -> list[int]:
    batch = Batch(reqs, phase)
    batch.input_ids = torch.cat([req.input_ids[req.cached_len : req.device_len] for req in reqs])
    batch.positions = make_positions(reqs, engine.device)
    batch.out_loc = torch.cat(
        [engine.page_table[req.table_idx, req.cached_len : req.device_len] for req in reqs]
    )
    engine.attn_backend.prepare_metadata(batch)
    output = engine.forward_batch(batch, engine.sampler.prepare(batch))
    for row, req in enumerate(reqs):
        req.append_host(output.next_tokens_cpu[row : row + 1])
    return output.next_tokens_cpu.tolist()


def request(row: int, **params: object) -> Req:
    ids = torch.tensor(PROMPT, dtype=torch.int32)
    return Req(ids, row, 0, 6, row, SamplingParams(**params), None)  # type: ignore[arg-type]


def test_with_cache_is_without(engine: Engine) -> None:
    req = request(0)
    said = step(engine, "prefill", [req])
    while req.can_decode:
        said += step(engine, "decode", [req])
    again = request(1)
    anew = step(engine, "prefill", [again])
    while again.can_decode:
        again.cached_len = 0
        anew += step(engine, "prefill", [again])
    assert said == anew
    assert len(said) == 6


def test_memory_is_planned(engine: Engine) -> None:
    assert engine.num_pages == 16
    assert engine.ctx.kv_cache.num_pages == 17
    assert engine.page_table.shape == (3, 32)
    assert set(engine.page_table[2].tolist()) == {64}, "the dummy's row points at the dummy page"


def test_a_seed_does_not_depend_on_company(engine: Engine) -> None:
    seeded = {"temperature": 1.5, "seed": 7}
    alone = step(engine, "prefill", [request(0, **seeded)])
    assert step(engine, "prefill", [request(0, temperature=1.5), request(1, **seeded)])[1:] == alone


def test_a_second_engine_needs_the_first_to_be_gone(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="already"):
        Engine(engine.config)
    assert try_get_tp_info() is not None


def sampled(logits: torch.Tensor, **params: object) -> list[int]:
    reqs = [
        Req(torch.zeros(5, dtype=torch.int32), row, 0, 4, row, SamplingParams(**params), None)  # type: ignore[arg-type]
        for row in range(len(logits))
    ]
    sampler = Sampler(torch.device("cpu"), logits.shape[1], seed=0)
    return sampler.sample(logits, sampler.prepare(Batch(reqs, "decode"))).tolist()


def test_draws_follow_temperature() -> None:
    logits = torch.tensor([[0.0, 1.0]]).expand(2000, 2)
    assert set(sampled(logits)) == {1}
    assert sum(sampled(logits, temperature=1.0)) / 2000 == pytest.approx(0.731, abs=0.04)
    assert sum(sampled(logits, temperature=4.0)) / 2000 == pytest.approx(0.562, abs=0.04)


def test_filters_keep_the_token_that_crosses() -> None:
    probs = torch.tensor([[0.4, 0.3, 0.2, 0.1]])
    assert (filter_probs(probs, top_p=torch.tensor([0.41])) > 0).tolist() == [[True, True, False, False]]
    assert (filter_probs(probs, top_k=torch.tensor([3])) > 0).sum() == 3
    assert (filter_probs(probs, min_p=torch.tensor([0.6])) > 0).sum() == 2


def test_penalties_move_greedy_requests_too() -> None:
    logits = torch.zeros(1, 8)
    logits[0, 0] = 1.0  # the prompt is five times token 0
    assert sampled(logits) == [0]
    assert sampled(logits, repetition_penalty=100.0, presence_penalty=0.0) == [0]
    logits[0, 3] = 0.5
    assert sampled(logits, repetition_penalty=100.0) == [3]
    assert sampled(logits, presence_penalty=2.0) == [0], "presence counts the answer, not the prompt"
