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
    bits = packed(MASK, "little")
    late = make_batch((20, 33, 0), (3, 1, 5))
    ragged = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        torch.empty(1 << 16, dtype=torch.uint8), backend="fa2"
    )
    arrays = (BATCH.qo_indptr, cumulated(BATCH.kv_lens), 8, 2, 64)
    not_measured: list[tuple[str, Any]] = [
        ("mask_size", lambda: planned(custom_mask=torch.cat([MASK, MASK[:1]]))),
        ("mask_size", lambda: ragged.plan(*arrays, custom_mask=MASK[:-1])),
        ("mask_type", lambda: planned(custom_mask=MASK.tolist())),
        ("mask_type", lambda: planned(custom_mask=MASK.to(torch.int8))),
        ("mask_type", lambda: planned(custom_mask=MASK.to(torch.uint8) * 255)),
        ("mask_type", lambda: planned(packed_custom_mask=bits.int())),
        ("mask_with_empty_request", lambda: planned(late, custom_mask=MASK)),
        ("packed_mask_size", lambda: planned(packed_custom_mask=bits[:5])),
    ]
    for code, call in not_measured:
        assert refused(call).code == code
        with mode.use("faithful"):
            assert refused(call).params["mistake"] == code
    planned(custom_mask=MASK.to(torch.uint8))
    for_more = refused(lambda: planned(custom_mask=MASK.to(torch.uint8) * 255))
    assert for_more.what["zh"] == "custom_mask 是 uint8，里面有 255；掩码里只能有 0 和 1。"


def test_a_mask_beside_arrays_of_another_type() -> None:
    """The arrays are checked first; their lengths are not even subtracted."""
    for name in ("indptr", "last", "qo_indptr"):
        wrong = BATCH.but(**{name: getattr(BATCH, name) > 0})
        assert refused(lambda w=wrong: planned(w, custom_mask=MASK)).code.endswith("not_int32")
    with mode.use("faithful"):  # one of two mistakes is acted out, but not over a mask that nobody can read
        shifted = BATCH.but(indptr=BATCH.indptr + i32([1, 0, 0, 0]))
        assert refused(lambda: planned(shifted, custom_mask=MASK.tolist())).code == "not_modelled"


def test_masks_that_are_no_masks_as_measured() -> None:
    """A mask too short is continued by nothing, float32 by the bytes that its numbers are made of."""
    short, floats = MASK[:-100], torch.ones(len(MASK))
    assert "wrong numbers" in refused(lambda: planned(custom_mask=short)).real["en"]
    assert "wrong numbers" in refused(lambda: planned(custom_mask=floats)).real["en"]
    with mode.use("faithful"):
        out = run(planned(custom_mask=short))
        of_floats = run(planned(custom_mask=floats))
    ended = MASK.clone()
    ended[-100:] = False
    assert torch.equal(out, run(planned(custom_mask=ended)))
    # 1.0 is 00 00 80 3f; shifted to their places in a byte, eight of these bytes leave its five upper bits. The third
    # request begins in the middle of a number.
    upper = [torch.arange(size) % 8 >= 3 for size in SIZES]
    assert torch.equal(of_floats[:4], run(planned(custom_mask=torch.cat(upper)))[:4])


def test_a_mask_on_fa3_as_measured() -> None:
    error = refused(lambda: planned(path="fa3", custom_mask=MASK))
    assert error.code == "mask_on_fa3"
    message = "BatchPrefillWithPagedKVCacheSM90Run failed with error: operation not supported"
    assert message in str(error)
    with mode.use("faithful"):
        wrapper = planned(path="fa3", custom_mask=MASK)
        with pytest.raises(RuntimeError, match=message) as caught:
            run(wrapper)
        assert not isinstance(caught.value, KernelError)


def test_a_mask_of_an_empty_request_as_measured() -> None:
    """plan counts a negative length, so that the bits behind it begin before the mask does."""
    batch = make_batch((20, 0, 9), (3, 5, 2))
    mask = random_mask(3 * 20 + 2 * 9)
    assert refused(lambda: planned(batch, custom_mask=mask)).code == "mask_with_empty_request"
    with mode.use("faithful"):
        wrapper = planned(batch, custom_mask=mask)
        for _ in range(2):
            with pytest.raises(KernelError, match="operation not supported on global/shared address space"):
                run(wrapper, batch)


def test_packed_bits_of_several_requests_are_looked_for_elsewhere() -> None:
    """plan counts their starts in elements and the kernel takes them for bytes."""
    bits, _ = flashinfer.segment_packbits(MASK, cumulated(SIZES), bitorder="little")
    error = refused(lambda: planned(packed_custom_mask=bits))
    assert error.code == "packed_mask_of_several_requests"
    assert (error.params["request"], error.params["start"]) == (1, SIZES[0])
    with mode.use("faithful"):  # measured: the first request right, the others not
        out = run(planned(packed_custom_mask=bits))
    wrong = (out - run(planned(custom_mask=MASK))).abs().amax(dim=(1, 2)) > 1e-2
    assert not bool(wrong[:3].any())
    assert bool(wrong[3:].all())
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
    g = torch.Generator().manual_seed(1)
    kv = torch.randn(sum(BATCH.kv_lens), 2, 64, generator=g).half()
    masked = ragged.run(BATCH.q, kv, kv)
    assert refused(lambda: ragged.plan(*arrays)).code == "mask_of_an_earlier_plan"
    with mode.use("faithful"):  # measured: exactly the old mask, causal or not
        ragged.plan(*arrays, causal=True)
        assert torch.equal(ragged.run(BATCH.q, kv, kv), masked)
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
    wrapper = graph_wrapper(**of_mask)
    plan(wrapper, BATCH, custom_mask=MASK)
    with mode.use("faithful"):  # measured: the mask that the buffers still hold
        plan(wrapper, BATCH)
        assert torch.equal(run(wrapper), run(planned(custom_mask=MASK)))


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
    with mode.use("faithful"):  # of fa3 nobody measured it
        assert refused(lambda: wrapper.run(BATCH.q, (BATCH.k, BATCH.v), sinks)).code == "not_modelled"
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


def with_sinks(wrapper: Any, *args: Any, batch: Any = BATCH, **options: Any) -> torch.Tensor:
    return wrapper.run(batch.q, (batch.k, batch.v), *args, **options)


@pytest.mark.parametrize("built_for", [-1, 3])
@pytest.mark.parametrize("window", [-1, 3])
def test_the_window_of_sinks_on_fa2_is_the_plans(built_for: int, window: int) -> None:
    """Measured: whatever the wrapper was built for, the plan counts."""
    sinks = torch.linspace(-1, 2, 8)
    wrapper = sink_wrapper(backend="fa2", window_left=built_for)
    plan(wrapper, BATCH, window_left=window)
    same = sink_wrapper(backend="fa2", window_left=window)
    plan(same, BATCH, window_left=window)
    assert torch.equal(with_sinks(wrapper, sinks), with_sinks(same, sinks))


def planned_sinks(backend: str = "fa2") -> Any:
    wrapper = sink_wrapper(backend=backend)
    plan(wrapper, BATCH)
    return wrapper


def test_sinks_of_another_form_as_measured() -> None:
    """Half types are read as pairs; of a slice the heads behind it are."""
    sinks = torch.linspace(-1, 2, 8)
    half = refused(lambda: with_sinks(planned_sinks(), sinks.half()))
    assert "wrong numbers" in half.real["en"]
    assert "happens to be right" in refused(lambda: with_sinks(planned_sinks(), sinks[:4])).real["en"]
    with mode.use("faithful"):
        assert torch.equal(with_sinks(planned_sinks(), sinks[:4]), with_sinks(planned_sinks(), sinks))
        pairs = torch.cat([sinks.half().view(torch.float32), torch.zeros(4)])
        assert torch.equal(with_sinks(planned_sinks(), sinks.half()), with_sinks(planned_sinks(), pairs))
        for unknown in (sinks[:4].clone(), sinks.double(), sinks.view(2, 4), [1.0]):
            assert refused(lambda s=unknown: with_sinks(planned_sinks(), s)).code == "not_modelled"
        assert refused(lambda: with_sinks(planned_sinks("fa3"), sinks.half())).code == "not_modelled"


def test_without_sinks_the_process_dies() -> None:
    """Measured: by keyword and not at all."""
    for given in ({"sinks": torch.zeros(8)}, {}):
        error = refused(lambda g=given: with_sinks(planned_sinks(), **g))
        assert "ends the process: SIGSEGV" in error.real["en"]
        with mode.use("faithful"):
            assert "SIGSEGV" in refused(lambda g=given: with_sinks(planned_sinks(), **g)).text("zh")


def test_heads_wider_than_the_variant_as_measured() -> None:
    """Measured: wrong numbers. The kernel knows 64 entries of each head; the rest of the result it leaves alone."""
    wide = make_batch(BATCH.kv_lens, BATCH.q_lens, head_dim=128)
    sinks = torch.zeros(8)
    wrapper = sink_wrapper(backend="fa2")
    assert refused(lambda: plan(wrapper, wide)).code == "jit_plan_differs"
    with mode.use("faithful"):
        plan(wrapper, wide)
        out = with_sinks(wrapper, sinks, 0.125, batch=wide)
        assert out.shape == wide.q.shape
        narrow = wide.but(q=wide.q[..., :64], k=wide.k[..., :64], v=wide.v[..., :64])
        plan(wrapper, narrow)
        assert torch.equal(out[..., :64], with_sinks(wrapper, sinks, 0.125, batch=narrow))
        assert not bool(out[..., 64:].any())
        thin = make_batch(BATCH.kv_lens, BATCH.q_lens, head_dim=32)
        assert refused(lambda: plan(wrapper, thin)).code == "not_modelled"
        assert refused(lambda: plan(wrapper, BATCH, q_data_type=torch.bfloat16)).code == "not_modelled"
