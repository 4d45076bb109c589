"""BatchAttention's own rules: lengths in tokens, a soft cap said twice, workspaces that no one gives it."""

from __future__ import annotations

import random
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from fake_kernels.reference import Request, attend
from fake_kernels.variants import Variant
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_batches import cumulated, i32
from test_fake_hostile import spoil

Q_LENS, KV_LENS, PAGE = (2, 1, 20), (20, 5, 33), 16
ARRAYS = {
    "qo_indptr": cumulated(Q_LENS),
    "kv_indptr": cumulated([2, 1, 3]),
    "kv_indices": i32([4, 2, 7, 0, 1, 5]),
    "kv_len_arr": i32(KV_LENS),
}
Q = torch.randn(sum(Q_LENS), 8, 64)
K, V = torch.randn(2, 8, PAGE, 2, 64).unbind(0)


def planned(
    soft_cap: float | None = None, page_size: int = PAGE, **changes: Any
) -> flashinfer.BatchAttention:
    wrapper = flashinfer.BatchAttention()
    given_arrays = ARRAYS | changes
    wrapper.plan(
        *given_arrays.values(),
        8,
        2,
        64,
        64,
        page_size,
        causal=True,
        logits_soft_cap=soft_cap,
        q_data_type=torch.float32,
        kv_data_type=torch.float32,
    )
    return wrapper


def refusal(code: str, argument: str, call: Any) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    assert (caught.value.code, caught.value.argument) == (code, argument)
    assert caught.value.text("zh") != caught.value.text("en")
    return caught.value


def test_float32_is_exact_and_soft_cap_and_scale_are_applied() -> None:
    slots = [
        torch.cat([torch.arange(16) + 16 * page for page in pages]) for pages in ([4, 2], [7], [0, 1, 5])
    ]
    starts = (0, 2, 3, 23)
    requests = [Request(starts[i], starts[i + 1], slots[i][: KV_LENS[i]]) for i in range(3)]
    for cap in (None, 5.0):
        out, lse = planned(cap).run(Q, (K, V), logits_soft_cap=cap or 0.0)
        variant = Variant(scale=64**-0.5, causal=True, soft_cap=cap or 0.0)
        want, want_lse = attend(Q, K, V, requests, variant, with_lse=True)
        assert torch.equal(out, want)
        torch.testing.assert_close(lse * torch.log(torch.tensor(2.0)), want_lse)


def test_counters_and_the_last_plan_are_readable() -> None:
    fresh = flashinfer.BatchAttention()
    assert (fresh.plan_count, fresh.run_count, fresh.last_plan) == (0, 0, None)
    wrapper = planned()
    wrapper.run(Q, (K, V))
    wrapper.run(Q, (K, V))
    assert (wrapper.plan_count, wrapper.run_count) == (1, 2)
    assert torch.equal(wrapper.last_plan["kv_len_arr"], ARRAYS["kv_len_arr"])
    assert wrapper.last_plan["kv_len_arr"] is not ARRAYS["kv_len_arr"]
    assert wrapper.last_plan["causal"] is True


def test_pages_may_have_room_for_more_than_the_length() -> None:
    out, _ = planned(kv_len_arr=i32([20, 5, 30])).run(Q, (K, V))
    assert out.isfinite().all()


@pytest.mark.parametrize(
    ("code", "argument", "changes"),
    [
        ("kv_len_not_int32", "kv_len_arr", {"kv_len_arr": torch.tensor(KV_LENS).short()}),
        ("kv_len_wrong_count", "kv_len_arr", {"kv_len_arr": i32([*KV_LENS, 4])}),
        ("not_contiguous", "kv_len_arr", {"kv_len_arr": i32([20, 0, 5, 0, 33, 0])[::2]}),
        ("not_one_dimensional", "kv_len_arr", {"kv_len_arr": i32(KV_LENS).view(1, 3)}),
        ("not_a_tensor", "qo_indptr", {"qo_indptr": [0, 2, 3, 23]}),
        ("qo_indptr_decreasing", "qo_indptr", {"qo_indptr": i32([0, 3, 2, 23])}),
        ("kv_indptr_decreasing", "kv_indptr", {"kv_indptr": i32([0, 3, 2, 6])}),
        ("indices_too_short", "kv_indices", {"kv_indices": i32([4, 2, 7, 0, 1])}),
        ("page_negative", "kv_indices", {"kv_indices": i32([4, 2, 7, 0, -1, 5])}),
        ("indices_not_int32", "kv_indices", {"kv_indices": torch.tensor([4, 2, 7, 0, 1, 5])}),
    ],
)
def test_wrong_batches_are_refused_at_plan(code: str, argument: str, changes: dict[str, Any]) -> None:
    refusal(code, argument, lambda: planned(**changes))
    with mode.use("faithful"), pytest.raises((RuntimeError, AttributeError)):
        planned(**changes)


def test_the_soft_cap_is_said_at_plan_and_at_run() -> None:
    told = refusal("soft_cap_differs", "logits_soft_cap", lambda: planned(5.0).run(Q, (K, V)))
    assert "NaN" in told.text("en")
    with pytest.raises(ValueError, match="template deduction error"):
        planned().run(Q, (K, V), logits_soft_cap=5.0)
    with mode.use("faithful"):
        out, lse = planned(5.0).run(Q, (K, V))
        assert out.isnan().all()
        assert lse.isnan().all()


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute '_use_profiler'"):
        flashinfer.BatchAttention().run(Q, (K, V))
    wrapper = planned()
    refusal("q_rows", "q", lambda: wrapper.run(Q[:22], (K, V)))
    refusal("q_dtype", "q", lambda: wrapper.run(Q.half(), (K, V)))
    refusal("page_size_differs", "kv_cache", lambda: planned(page_size=20).run(Q, (K, V)))
    refusal("page_out_of_range", "kv_indices", lambda: wrapper.run(Q, (K[:7], V[:7])))
    refusal("out_mismatch", "out", lambda: wrapper.run(Q, (K, V), out=Q[:3].clone()))
    refusal("out_mismatch", "lse", lambda: wrapper.run(Q, (K, V), lse=torch.zeros(23, 8).half()))
    refusal("not_modelled", "v_scale", lambda: wrapper.run(Q, (K, V), v_scale=torch.ones(1)))
    with pytest.raises(KeyError, match="Unrecognized paged_kv_cache type"):
        wrapper.run(Q, [K, V])


def test_options_of_the_constructor_and_of_plan() -> None:
    with pytest.raises(KeyError, match="Invalid kv_layout NDH"):
        flashinfer.BatchAttention("NDH")
    wrapper = flashinfer.BatchAttention()
    with pytest.raises(ValueError, match=r"head_dim > 256 \(got head_dim_qk=512, head_dim_vo=512\)"):
        wrapper.plan(*ARRAYS.values(), 8, 2, 512, 512, PAGE)
    with pytest.raises(NotImplementedError):
        wrapper.plan(*ARRAYS.values(), 8, 2, 64, 64, PAGE, use_profiler=True)
    with pytest.raises(RuntimeError, match="plan\\(\\) must complete before"):
        wrapper.prewarm_paged_kv_stride_variant()
    with pytest.raises(ValueError, match="variant must be 'independent', got 'equal'"):
        wrapper.prewarm_paged_kv_stride_variant("equal")
    planned().prewarm_paged_kv_stride_variant()


def test_sixteen_kv_heads_of_128_are_too_many_for_its_own_workspace() -> None:
    """Measured: whatever the batch, it takes room for the worst case."""
    wrapper = flashinfer.BatchAttention()
    wrapper.plan(*ARRAYS.values(), 8, 8, 128, 128, PAGE)
    for heads, size in ((16, 622854144), (32, 1245708288)):
        with pytest.raises(
            KernelError, match=f"holistic_partial_o with size {size} and alignment 16"
        ) as caught:
            wrapper.plan(*ARRAYS.values(), heads, heads, 128, 128, PAGE)
        assert "only 402653184 bytes" in str(caught.value)
    assert wrapper.plan_info.float_bytes < 402653184


def test_plan_info_gives_every_item_to_a_cta() -> None:
    info = planned().plan_info
    assert info.path == "persistent"
    assert info.padded_batch_size == 264
    assert {item.cta is not None for item in info.work} == {True}
    assert {(item.request, item.kv, item.head) for item in info.work} == {
        (i, (0, n), head) for i, n in enumerate(KV_LENS) for head in (0, 1)
    }
    assert flashinfer.BatchAttention().plan_info is None


def test_too_much_work_is_refused_in_the_planners_words() -> None:
    with pytest.raises(KernelError, match="exceeds max_total_num_works 65536"):
        planned(qo_indptr=i32([0, 1, 2, 2**31 - 1]))


@settings(max_examples=120, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_anything_is_answered_with_an_explanation_or_numbers(seed: int) -> None:
    rng = random.Random(seed)
    spoilt = {name: spoil(ARRAYS[name], rng) for name in rng.sample(sorted(ARRAYS), rng.randint(1, 2))}
    try:
        assert planned(**spoilt).run(Q, (K, V))[0].shape == Q.shape
    except KernelError as told:
        told.text("zh")
