"""Chapter 1: the lengths of a request, and what may be asked for."""

from collections.abc import Mapping

import pytest
import torch

from minisgl.core import Batch, Context, Req, SamplingParams, get_global_ctx, set_global_ctx


def request(tokens: int = 5, cached_len: int = 2, output_len: int = 3) -> Req:
    return Req(torch.arange(tokens, dtype=torch.int32), 0, cached_len, output_len, 7, SamplingParams(), None)


def test_lengths_step_by_step() -> None:
    req = request()
    seen = []
    while req.can_decode:
        seen.append((req.cached_len, req.device_len, req.extend_len, req.remain_len))
        req.complete_one()
        req.append_host(torch.tensor([9], dtype=torch.int32))
    assert seen == [(2, 5, 3, 3), (5, 6, 1, 2), (6, 7, 1, 1)]
    assert (req.device_len, req.max_device_len, len(req.input_ids), req.prompt_len) == (8, 8, 8, 5)


@pytest.mark.parametrize("cached_len", [-1, 5, 6])
def test_a_token_is_always_left_to_compute(cached_len: int) -> None:
    with pytest.raises(ValueError, match="at least one token has to be computed"):
        request(cached_len=cached_len)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"top_k": 0},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"min_p": 1.0},
        {"max_tokens": 0},
        {"stop": [""]},
        {"presence_penalty": 2.5},
        {"logprobs": 21},
        {"n": 0},
    ],
)
def test_parameters_out_of_range_are_named(wrong: Mapping[str, object]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        SamplingParams(**wrong)  # type: ignore[arg-type]


def test_greedy_whatever_else_is_said() -> None:
    assert SamplingParams(top_p=0.1).is_greedy
    assert SamplingParams(temperature=1.0, top_k=1).is_greedy
    assert not SamplingParams(temperature=0.1).is_greedy


def test_each_answer_of_a_prompt_has_a_seed_of_its_own() -> None:
    params = SamplingParams(temperature=1.0, seed=5, n=3)
    seeds = [params.choice(index).seed for index in range(3)]
    assert seeds[0] == 5
    assert len(set(seeds)) == 3
    assert params.choice(2).n == 1
    assert SamplingParams(n=2).choice(1).seed is None


def test_a_batch_knows_its_phase_and_its_padding() -> None:
    batch = Batch([request(), request()], "decode")
    assert (batch.is_decode, batch.is_prefill, batch.size, batch.padded_size) == (True, False, 2, 2)
    batch.padded_reqs = [*batch.reqs, request()]
    assert (batch.size, batch.padded_size) == (2, 3)


def test_one_batch_at_a_time_and_one_context_a_process() -> None:
    ctx = Context(page_size=1)
    with pytest.raises(RuntimeError, match="no context yet"):
        get_global_ctx()
    set_global_ctx(ctx)
    with pytest.raises(RuntimeError, match="has a context already"):
        set_global_ctx(ctx)
    with pytest.raises(RuntimeError, match="no batch is in flight"):
        _ = ctx.batch
    batch = Batch([request()], "prefill")
    with ctx.forward_batch(batch):
        assert get_global_ctx().batch is batch
        with pytest.raises(RuntimeError, match="one forward at a time"), ctx.forward_batch(batch):
            pass
