"""Custom masks and sinks: what strict mode refuses, buffers under CUDA graphs, and the library's own traps."""

from __future__ import annotations

from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.bits import packed
from fake_kernels.errors import KernelError
from paged_batches import PATHS, cumulated, i32, make_batch, plan, wrapper_for

BATCH = make_batch((20, 33, 16), (3, 1, 5), dtype=torch.float16)
SIZES = [n * kv for n, kv in zip(BATCH.q_lens, BATCH.kv_lens, strict=True)]


def random_mask(size: int = sum(SIZES), seed: int = 0) -> torch.Tensor:
    return torch.rand(size, generator=torch.Generator().manual_seed(seed)) < 0.6


MASK = random_mask()


def refused(call: Any) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    return caught.value


def planned(batch: Any = BATCH, path: str = "fa2", **options: Any) -> Any:
    wrapper = wrapper_for(path)
    plan(wrapper, batch, **options)
    return wrapper


def run(wrapper: Any, batch: Any = BATCH) -> torch.Tensor:
    return wrapper.run(batch.q, (batch.k, batch.v))


def test_what_is_wrong_with_a_mask() -> None:
    empty = make_batch((20, 0, 16), (3, 1, 5))
    bits = packed(MASK, "little")
    calls: dict[str, Any] = {
        "mask_size": lambda: planned(custom_mask=MASK[:-1]),
        "mask_type": lambda: planned(custom_mask=MASK.float()),
        "mask_on_fa3": lambda: planned(path="fa3", custom_mask=MASK),
        "mask_with_empty_request": lambda: planned(empty, custom_mask=MASK),
        "packed_mask_size": lambda: planned(packed_custom_mask=bits[:5]),
    }
    for code, call in calls.items():
        assert refused(call).code == code
        with mode.use("faithful"):
            assert refused(call).code == "not_modelled"
    assert refused(lambda: planned(packed_custom_mask=bits.int())).code == "mask_type"


def test_packed_bits_of_several_requests_are_looked_for_elsewhere() -> None:
    """plan counts their starts in elements and the kernel takes them for bytes."""
    bits, _ = flashinfer.segment_packbits(MASK, cumulated(SIZES), bitorder="little")
    error = refused(lambda: planned(packed_custom_mask=bits))
    assert error.code == "packed_mask_of_several_requests"
    assert (error.params["request"], error.params["start"]) == (1, SIZES[0])
    spread = torch.zeros(sum(SIZES), dtype=torch.uint8)
    for start, part in zip(cumulated(SIZES).tolist(), MASK.split(SIZES), strict=False):
        spread[start : start + -(-len(part) // 8)] = packed(part, "little")
    assert torch.equal(run(planned(packed_custom_mask=spread)), run(planned(custom_mask=MASK)))


def test_a_mask_takes_the_place_of_causal() -> None:
    out = run(planned(custom_mask=MASK, causal=True))
    assert torch.equal(out, run(planned(custom_mask=MASK, causal=False)))
    assert not torch.equal(out, run(planned(causal=True)))
    everything = torch.ones_like(MASK)
    torch.testing.assert_close(
        run(planned(custom_mask=everything)), run(planned(causal=False)), atol=2e-3, rtol=1e-3
    )


def test_auto_goes_to_fa2_for_a_mask_and_stays() -> None:
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.empty(1 << 16, dtype=torch.uint8))
    plan(wrapper, BATCH, custom_mask=MASK)
    assert wrapper._backend == "fa2"
    run(wrapper)
    plan(wrapper, BATCH)
    assert wrapper._backend == "fa2"
    other = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.empty(1 << 16, dtype=torch.uint8))
    plan(other, BATCH)
    run(other)
    error = refused(lambda: plan(other, BATCH, custom_mask=MASK))
    assert error.code == "mask_on_fa3"
    assert "stays what the first plan made of it" in error.fix["en"]


def test_the_paged_wrapper_forgets_a_mask_and_the_ragged_one_doesnt() -> None:
    wrapper = planned(custom_mask=MASK)
    run(wrapper)
    plan(wrapper, BATCH)
    assert torch.equal(run(wrapper), run(planned()))
    ragged = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        torch.empty(1 << 16, dtype=torch.uint8), backend="fa2"
    )
    arrays = (BATCH.qo_indptr, cumulated(BATCH.kv_lens), 8, 2, 64)
    ragged.plan(*arrays, custom_mask=MASK, non_blocking=False)
    assert refused(lambda: ragged.plan(*arrays)).code == "mask_of_an_earlier_plan"
    ragged.plan(*arrays, custom_mask=~MASK)


def test_masks_under_cuda_graphs() -> None:
    names = ("qo_indptr_buf", "paged_kv_indptr_buf", "paged_kv_indices_buf", "paged_kv_last_page_len_buf")
    buffers = dict(zip(names, (i32([0] * 4), i32([0] * 4), i32([0] * 20), i32([0] * 3)), strict=True))
    of_mask = {"custom_mask_buf": torch.zeros(100, dtype=torch.uint8), "mask_indptr_buf": i32([0] * 4)}
    space = torch.empty(1 << 23, dtype=torch.uint8)

    def graph_wrapper(**more: Any) -> Any:
        return flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            space, use_cuda_graph=True, backend="fa2", **buffers, **more
        )

    wrapper = graph_wrapper(**of_mask)
    plan(wrapper, BATCH, custom_mask=MASK)
    assert of_mask["mask_indptr_buf"].tolist() == [0, 8, 13, 23]
    assert torch.equal(run(wrapper), run(planned(custom_mask=MASK)))
    of_mask["custom_mask_buf"][:23] = 255
    torch.testing.assert_close(run(wrapper), run(planned(causal=False)), atol=2e-3, rtol=1e-3)
    for missing in of_mask:
        given = {name: buffer for name, buffer in of_mask.items() if name != missing}
        with pytest.raises(ValueError, match=f"{missing} must be initialized"):
            plan(graph_wrapper(**given), BATCH, custom_mask=MASK)
    plan(graph_wrapper(), BATCH)
    assert refused(lambda: plan(graph_wrapper(**of_mask), BATCH)).code == "mask_missing_under_graphs"


def test_packed_bits_must_not_change_after_plan() -> None:
    one = make_batch((20,), (3,))
    bits = packed(random_mask(60), "little")
    wrapper = planned(one, packed_custom_mask=bits)
    run(wrapper, one)
    bits[0] ^= 1
    assert refused(lambda: run(wrapper, one)).argument == "packed_custom_mask"
    with mode.use("faithful"):
        late = run(wrapper, one)
    assert torch.equal(late, run(planned(one, packed_custom_mask=bits), one))


def test_single_prefill_packs_any_type_and_knows_its_size() -> None:
    q, k, v = torch.randn(3, 8, 64), torch.randn(20, 2, 64), torch.randn(20, 2, 64)
    mask = random_mask(60).view(3, 20)
    want = flashinfer.single_prefill_with_kv_cache(q, k, v, custom_mask=mask)
    for other in (mask.int(), mask.float() * 3):
        assert torch.equal(flashinfer.single_prefill_with_kv_cache(q, k, v, custom_mask=other), want)
    error = refused(lambda: flashinfer.single_prefill_with_kv_cache(q, k, v, custom_mask=mask[:, :-1]))
    assert error.code == "mask_size"
    assert (
        refused(
            lambda: flashinfer.single_prefill_with_kv_cache(q, k, v, custom_mask=mask, backend="fa3")
        ).code
        == "mask_on_fa3"
    )


def test_packing_is_checked() -> None:
    for call in (
        flashinfer.packbits,
        lambda x, bitorder: flashinfer.segment_packbits(x, i32([0, 5]), bitorder),
    ):
        with pytest.raises(RuntimeError, match="bitorder must be 'big' or 'little'"):
            call(MASK[:5], "middle")
    for sums in ([1, 5], [0, 4], [0, 5, 3, 5]):
        assert refused(lambda s=sums: flashinfer.segment_packbits(MASK[:5], i32(s))).code == "segments"


@pytest.mark.parametrize("path", PATHS)
def test_sinks_of_run_are_refused_because_the_kernels_drop_them(path: str) -> None:
    batch = make_batch((20, 33))
    wrapper = planned(batch, path)
    error = refused(lambda: wrapper.run(batch.q, (batch.k, batch.v), sinks=torch.zeros(8)))
    assert error.code == "sinks_ignored"
    assert "BatchAttentionWithAttentionSinkWrapper" in error.fix["en"]
    with mode.use("faithful"):  # measured: exactly the result without them
        out = wrapper.run(batch.q, (batch.k, batch.v), sinks=torch.full((8,), 5.0))
    assert torch.equal(out, wrapper.run(batch.q, (batch.k, batch.v)))


def sink_wrapper(**options: Any) -> Any:
    given = {
        "q_data_type": torch.float16,
        "kv_data_type": torch.float16,
        "head_dim_qk": 64,
        "head_dim_vo": 64,
    }
    return flashinfer.BatchAttentionWithAttentionSinkWrapper(
        torch.empty(1 << 16, dtype=torch.uint8), **{**given, **options}
    )


def test_the_sink_wrapper_is_compiled_for_one_kind_of_plan() -> None:
    assert sink_wrapper()._backend == "fa3"
    sinks = torch.zeros(8)
    wrapper = sink_wrapper()
    assert refused(lambda: plan(wrapper, BATCH, q_data_type=torch.bfloat16)).code == "jit_plan_differs"
    plan(wrapper, BATCH, window_left=3)
    error = refused(lambda: wrapper.run(BATCH.q, (BATCH.k, BATCH.v), sinks))
    assert error.argument == "window_left"
    wrapper = sink_wrapper(window_left=3)
    plan(wrapper, BATCH, window_left=3)
    wrapper.run(BATCH.q, (BATCH.k, BATCH.v), sinks, 0.3)
    for wrong in (sinks[:4], sinks.half()):
        assert refused(lambda s=wrong: wrapper.run(BATCH.q, (BATCH.k, BATCH.v), s)).code == "sinks_shape"
    assert refused(lambda: wrapper.run(BATCH.q, (BATCH.k, BATCH.v))).code == "jit_argument"
    by_keyword = refused(lambda: wrapper.run(BATCH.q, (BATCH.k, BATCH.v), sinks=sinks))
    assert by_keyword.code == "sinks_ignored"
    assert "run(q, paged_kv_cache, sinks)" in by_keyword.fix["en"]
    assert refused(lambda: sink_wrapper(pos_encoding_mode="ALIBI")).code == "not_modelled"
