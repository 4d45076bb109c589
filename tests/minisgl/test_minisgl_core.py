import pytest
import torch

from minisgl.core import Batch, Context, Req, SamplingParams, get_global_ctx, reset_global_ctx, set_global_ctx
from minisgl.distributed import DistributedInfo, get_tp_info, reset_tp_info, set_tp_info, try_get_tp_info


def make_req(prompt: int = 5, cached_len: int = 0, output_len: int = 2, uid: int = 0) -> Req:
    ids = torch.arange(prompt, dtype=torch.int32)
    return Req(ids, 0, cached_len, output_len, uid, SamplingParams(), None)


def test_a_request_from_its_prompt_to_its_last_token() -> None:
    req = make_req(prompt=5, cached_len=3, output_len=2)
    lengths = []
    for token in (7, 8):
        lengths.append((req.cached_len, req.device_len, req.extend_len, req.remain_len, req.can_decode))
        req.complete_one()
        req.append_host(torch.tensor([token], dtype=torch.int32))
    lengths.append((req.cached_len, req.device_len, req.extend_len, req.remain_len, req.can_decode))
    assert lengths == [(3, 5, 2, 2, True), (5, 6, 1, 1, True), (6, 7, 1, 0, False)]
    assert req.input_ids.tolist() == [0, 1, 2, 3, 4, 7, 8]
    assert req.max_device_len == 7


@pytest.mark.parametrize(("prompt", "cached_len"), [(5, 5), (5, 6), (5, -1), (0, 0)])
def test_a_request_always_has_a_token_to_compute(prompt: int, cached_len: int) -> None:
    with pytest.raises(ValueError, match="at least one token has to be computed"):
        make_req(prompt=prompt, cached_len=cached_len)


@pytest.mark.parametrize(
    ("params", "greedy"),
    [
        (SamplingParams(), True),
        (SamplingParams(temperature=0.0, top_p=0.5, top_k=40), True),
        (SamplingParams(temperature=1.0, top_k=1), True),
        (SamplingParams(temperature=0.7), False),
    ],
)
def test_greedy_is_greedy_whatever_top_p_says(params: SamplingParams, greedy: bool) -> None:
    assert params.is_greedy is greedy


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_k": 0},
        {"top_k": -2},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_p": float("nan")},
        {"min_p": 1.0},
        {"min_p": -0.1},
        {"max_tokens": 0},
    ],
)
def test_sampling_parameters_out_of_range_are_named(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}="):
        SamplingParams(**wrong)  # type: ignore[arg-type]


def test_a_batch_is_padded_by_nobody_until_somebody_does() -> None:
    reqs = [make_req(uid=1), make_req(uid=2)]
    batch = Batch(reqs, "decode")
    assert (batch.padded_reqs, batch.size, batch.padded_size) == (reqs, 2, 2)
    batch.padded_reqs = [*reqs, make_req()]
    assert (batch.size, batch.padded_size) == (2, 3)
    assert (batch.is_decode, batch.is_prefill) == (True, False)


def test_a_batch_is_in_flight_only_inside_its_block() -> None:
    ctx = Context(page_size=1)
    batch = Batch([make_req()], "prefill")
    with ctx.forward_batch(batch):
        assert ctx.batch is batch
        with pytest.raises(RuntimeError, match="one forward at a time"), ctx.forward_batch(batch):
            pass
    with pytest.raises(ZeroDivisionError), ctx.forward_batch(batch):
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="no batch is in flight"):
        _ = ctx.batch


def test_what_is_not_there_yet_is_named() -> None:
    ctx = Context(page_size=1)
    for name in ("page_table", "kv_cache", "attn_backend"):
        with pytest.raises(RuntimeError, match=f"no {name} yet"):
            getattr(ctx, name)


def test_context_and_rank_are_the_processes_own_and_set_once() -> None:
    with pytest.raises(RuntimeError, match="no context yet"):
        get_global_ctx()
    ctx = Context(page_size=1)
    set_global_ctx(ctx)
    assert get_global_ctx() is ctx
    with pytest.raises(RuntimeError, match="has a context already"):
        set_global_ctx(ctx)
    reset_global_ctx()

    assert try_get_tp_info() is None
    with pytest.raises(RuntimeError, match="rank is not known"):
        get_tp_info()
    set_tp_info(DistributedInfo(1, 2))
    assert get_tp_info() == DistributedInfo(1, 2)
    with pytest.raises(RuntimeError, match="is rank 1 of 2 already"):
        set_tp_info(DistributedInfo(0, 1))
    reset_tp_info()
    with pytest.raises(ValueError, match="rank 2 of 2"):
        DistributedInfo(2, 2)
