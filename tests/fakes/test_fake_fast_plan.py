"""fast_decode_plan: what a right engine does with it is never refused, what it leaves undone is told."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from paged_batches import DECODE_PATHS, PagedBatch, make_batch, plan, plan_and_run, wrapper_for


def fast(wrapper: Any, batch: PagedBatch, **options: Any) -> None:
    sizes = (*batch.heads, batch.q.shape[-1], batch.page_size)
    told = {"q_data_type": batch.q.dtype, **options}
    flashinfer.decode.fast_decode_plan(wrapper, batch.indptr, batch.indices, batch.last, *sizes, **told)


def run(wrapper: Any, batch: PagedBatch) -> torch.Tensor:
    out: torch.Tensor = wrapper.run(batch.q, (batch.k, batch.v))
    return out


def refused(code: str, call: Any) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    assert caught.value.code == code
    for lang in ("zh", "en"):
        assert caught.value.text(lang)
    return caught.value


def graph_wrapper(batch: PagedBatch, path: str) -> tuple[Any, dict[str, torch.Tensor]]:
    size = len(batch.kv_lens)
    buffers = {
        "indptr_buffer": torch.zeros(size + 1, dtype=torch.int32),
        "indices_buffer": torch.zeros(64, dtype=torch.int32),
        "last_page_len_buffer": torch.zeros(size, dtype=torch.int32),
    }
    workspace = torch.empty(8 << 20, dtype=torch.uint8)
    of = flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper
    return of(workspace, **buffers, use_tensor_cores=path == "tc"), buffers


def fill(buffers: dict[str, torch.Tensor], batch: PagedBatch) -> None:
    buffers["indptr_buffer"].copy_(batch.indptr)
    buffers["indices_buffer"][: len(batch.indices)].copy_(batch.indices)
    buffers["last_page_len_buffer"].copy_(batch.last)


ONE, TWO = make_batch((17, 5, 40), seed=1), make_batch((33, 16, 2), seed=2, spare_pages=6)  # 11 pages each


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_it_plans_as_plan_does(path: str) -> None:
    wrapper = wrapper_for(path)
    plan(wrapper, ONE)
    run(wrapper, ONE)
    wrapper.plan = partial(flashinfer.fast_decode_plan, wrapper)  # as engines bind it
    fast(wrapper, TWO, global_override_indptr_cpu=TWO.indptr.clone())
    assert torch.equal(run(wrapper, TWO), plan_and_run(path, TWO))
    assert wrapper.plan_count == 2
    assert torch.equal(wrapper.last_plan["indices"], TWO.indices)


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_before_any_plan(path: str) -> None:
    error = refused("fast_plan_first", lambda: fast(wrapper_for(path), ONE))
    assert isinstance(error, RuntimeError)
    assert "has no attribute '_cached_module'" in str(error)
    with mode.use("faithful"), pytest.raises(RuntimeError, match=r"Error in standard plan: .*_cached_module"):
        fast(wrapper_for(path), ONE)


OTHER_KERNELS: dict[str, dict[str, Any]] = {
    "q_data_type": {"q_data_type": torch.bfloat16},
    "kv_data_type": {"kv_data_type": torch.bfloat16},
    "pos_encoding_mode": {"pos_encoding_mode": "ALIBI"},
    "window_left": {"window_left": 7},
    "logits_soft_cap": {"logits_soft_cap": 1.5},
}


def planned_once(path: str, batch: PagedBatch = ONE) -> Any:
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    run(wrapper, batch)
    return wrapper


@pytest.mark.parametrize("path", DECODE_PATHS)
@pytest.mark.parametrize("argument", OTHER_KERNELS)
def test_the_kernel_is_that_of_the_last_plan(path: str, argument: str) -> None:
    wrapper = planned_once(path)
    error = refused("fast_plan_kernel", lambda: fast(wrapper, TWO, **OTHER_KERNELS[argument]))
    assert error.argument == argument
    assert "{" not in error.text("en") + error.text("zh")


def test_another_head_dim_is_another_kernel() -> None:
    narrow = make_batch((33, 16, 2), seed=2, head_dim=32)
    assert refused("fast_plan_kernel", lambda: fast(planned_once("dec"), narrow)).argument == "head_dim"


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_a_kernel_with_a_window_does_without_one_too(path: str) -> None:
    """Measured: right."""
    wrapper = planned_once(path, ONE.but(plan_options={"window_left": 7}))
    fast(wrapper, TWO)
    assert torch.equal(run(wrapper, TWO), plan_and_run(path, TWO))
    fast(wrapper, TWO, window_left=7)  # the kernel of the last plan is still the one with it
    windowed = TWO.but(plan_options={"window_left": 7})
    assert torch.equal(run(wrapper, TWO), plan_and_run(path, windowed))


def test_the_schedule_has_the_blocks_of_the_compiled_kernel() -> None:
    """On CUDA cores a kernel with a window needs other registers than one without."""
    batch = make_batch((33, 16, 2), heads=(16, 2))
    windowed = batch.but(plan_options={"window_left": 7})
    wrapper = planned_once("dec", windowed)
    fast(wrapper, batch)
    assert wrapper.plan_info.blocks_per_sm == planned_once("dec", windowed).plan_info.blocks_per_sm == 8
    assert planned_once("dec", batch).plan_info.blocks_per_sm == 9


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_a_cap_that_is_left_out_is_another_kernel(path: str) -> None:
    """Measured: tensor cores return NaN, CUDA cores something else than with and without it. What fits their numbers is that
    all scores weigh the same."""
    wrapper = planned_once(path, ONE.but(plan_options={"logits_soft_cap": 1.5}))
    assert refused("fast_plan_kernel", lambda: fast(wrapper, TWO)).argument == "logits_soft_cap"
    with mode.use("faithful"):
        fast(wrapper, TWO)
        out = run(wrapper, TWO)
    if path == "tc":
        assert bool(out.isnan().all())
        return
    flat = TWO.but(plan_options={"sm_scale": 0.0})
    torch.testing.assert_close(out, plan_and_run(path, flat), atol=2e-3, rtol=1e-2)


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_faithful_positions_are_those_of_the_last_plan(path: str) -> None:
    """Measured with ROPE_LLAMA, given and left out; ALiBi wasn't."""
    rope = {"pos_encoding_mode": "ROPE_LLAMA"}
    plain, turned = planned_once(path), planned_once(path, ONE.but(plan_options=rope))
    ignored = refused("fast_plan_kernel", lambda: fast(plain, TWO, **rope))
    assert "as if it had not been given" in ignored.real["en"]
    assert "wrong numbers" in refused("fast_plan_kernel", lambda: fast(turned, TWO)).real["en"]
    with mode.use("faithful"):
        fast(plain, TWO, **rope)
        assert torch.equal(run(plain, TWO), plan_and_run(path, TWO))
        fast(turned, TWO)
        assert torch.equal(run(turned, TWO), plan_and_run(path, TWO.but(plan_options=rope)))
        refused("not_modelled", lambda: fast(plain, TWO, pos_encoding_mode="ALIBI"))
        refused("not_modelled", lambda: fast(turned, TWO, pos_encoding_mode="ALIBI"))


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_faithful_another_type_is_found_by_run(path: str) -> None:
    half = TWO.but(q=TWO.q.bfloat16(), k=TWO.k.bfloat16(), v=TWO.v.bfloat16())
    message = "The dtype of q torch.bfloat16 does not match the q_data_type torch.float16 specified in plan function."
    with mode.use("faithful"):
        wrapper = planned_once(path)
        fast(wrapper, half)
        with pytest.raises(ValueError, match=re.escape(message)) as plain:
            run(wrapper, half)
        assert not isinstance(plain.value, KernelError)
        assert torch.equal(
            run(wrapper, TWO), plan_and_run(path, TWO)
        )  # the type of the last plan still counts
    with pytest.raises(ValueError, match=re.escape(message)):
        fast(planned_once(path), half)


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_faithful_a_cap_is_ignored_by_a_kernel_without(path: str) -> None:
    with mode.use("faithful"):
        wrapper = planned_once(path)
        fast(wrapper, TWO, logits_soft_cap=1.5)
        assert torch.equal(run(wrapper, TWO), plan_and_run(path, TWO))
        assert wrapper.plan_info is None
        fast(wrapper, TWO)
        assert wrapper.plan_info is not None


def test_faithful_a_window_is_ignored_by_cuda_cores_and_wrong_on_tensor_cores() -> None:
    with mode.use("faithful"):
        for path in DECODE_PATHS:
            wrapper = planned_once(path)
            fast(wrapper, TWO, window_left=7)
            out, without = run(wrapper, TWO), plan_and_run(path, TWO)
            windowed = plan_and_run(path, TWO.but(plan_options={"window_left": 7}))
            if path == "dec":
                assert torch.equal(out, without)
                continue
            assert torch.equal(out, run(wrapper, TWO))
            assert bool(out.isfinite().all())
            for right in (without, windowed):
                assert not torch.allclose(out, right, atol=1e-2)


@pytest.mark.parametrize("path", DECODE_PATHS)
@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_faithful_narrow_heads_under_a_wide_kernel(path: str, layout: str) -> None:
    wide, narrow = (make_batch((33, 16, 2), seed=2, head_dim=dim) for dim in (128, 64))
    if layout == "HND":
        wide, narrow = (
            b.but(k=b.k.transpose(1, 2).contiguous(), v=b.v.transpose(1, 2).contiguous())
            for b in (wide, narrow)
        )
    with mode.use("faithful"):
        wrapper = wrapper_for(path, kv_layout=layout)
        plan(wrapper, wide)
        run(wrapper, wide)
        fast(wrapper, narrow)
        out, lse = wrapper.run_return_lse(narrow.q, (narrow.k, narrow.v))
        assert out.shape == narrow.q.shape
        assert lse.shape == narrow.q.shape[:2]
        assert bool(out.isfinite().all())
        assert torch.equal(run(wrapper, narrow), run(wrapper, narrow))
        own = wrapper_for(path, kv_layout=layout)
        plan(own, narrow)
        assert not torch.allclose(out, run(own, narrow), atol=1e-2)
        fast(wrapper, wide)  # and what it was compiled for is right as before
        assert torch.equal(run(wrapper, wide), run(wrapper, wide))
        other_way = wrapper_for(path, kv_layout=layout)
        plan(other_way, narrow)
        run(other_way, narrow)
        fast(other_way, wide)  # of each wider head only the first part is read and written
        part = run(other_way, wide)
        assert part.shape == wide.q.shape
        assert not bool(part[..., 64:].any())
        firsts = (x[..., :64].contiguous() for x in (wide.q, wide.k, wide.v))
        first = wide.but(**dict(zip(("q", "k", "v"), firsts, strict=True)))
        again = wrapper_for(path, kv_layout=layout)
        plan(again, first, sm_scale=128**-0.5)
        assert torch.equal(part[..., :64], run(again, first))


def test_another_window_of_the_same_kernel_is_a_window() -> None:
    wrapper = wrapper_for("dec")
    plan(wrapper, ONE.but(plan_options={"window_left": 3}))
    run(wrapper, ONE)
    fast(wrapper, TWO, window_left=9)
    assert torch.equal(run(wrapper, TWO), plan_and_run("dec", TWO.but(plan_options={"window_left": 9})))


@pytest.mark.parametrize("path", DECODE_PATHS)
@pytest.mark.parametrize("non_blocking", [True, False])
def test_the_tensors_are_read_when_the_kernel_runs(path: str, non_blocking: bool) -> None:
    """Nothing is copied, so a blocking plan protects from nothing either."""

    def planned() -> tuple[Any, PagedBatch]:
        batch = TWO.but(indices=TWO.indices.clone())
        wrapper = wrapper_for(path)
        plan(wrapper, ONE)
        run(wrapper, ONE)
        fast(wrapper, batch, non_blocking=non_blocking)
        return wrapper, batch

    wrapper, batch = planned()
    batch.indices.copy_(batch.indices.flip(0))
    error = refused("changed_after_plan", lambda: run(wrapper, batch))
    assert error.argument == "indices"
    assert "fast_decode_plan" in error.what["en"]
    assert "fast_decode_plan" in error.what["zh"]
    with mode.use("faithful"):
        wrapper, batch = planned()
        right = run(wrapper, batch)
        batch.indices.copy_(batch.indices.flip(0))
        assert torch.equal(run(wrapper, batch), plan_and_run(path, batch))
        assert not torch.equal(run(wrapper, batch), right)


@pytest.mark.parametrize("name", ["indptr", "last"])
def test_faithful_other_lengths_after_the_plan_were_not_measured(name: str) -> None:
    batch = TWO.but(indptr=TWO.indptr.clone(), last=TWO.last.clone())
    wrapper = planned_once("dec")
    fast(wrapper, batch)
    changed = getattr(batch, name)
    changed[1] -= 1
    refused("changed_after_plan", lambda: run(wrapper, batch))
    with mode.use("faithful"):
        refused("not_modelled", lambda: run(wrapper, batch))


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_under_graphs_the_buffers_are_the_callers_to_fill(path: str) -> None:
    wrapper, buffers = graph_wrapper(ONE, path)
    plan(wrapper, ONE)
    run(wrapper, ONE)
    want = plan_and_run(path, TWO)
    fill(buffers, TWO)
    fast(wrapper, TWO)
    assert torch.equal(run(wrapper, TWO), want)
    # After the plan is in time too: the kernel reads them later. And they may be what is given.
    fast(wrapper, ONE)
    fill(buffers, ONE)
    assert torch.equal(run(wrapper, ONE), plan_and_run(path, ONE))
    fill(buffers, TWO)
    given = TWO.but(
        indptr=buffers["indptr_buffer"],
        indices=buffers["indices_buffer"],
        last=buffers["last_page_len_buffer"],
    )
    fast(wrapper, given)
    assert torch.equal(run(wrapper, TWO), want)


@pytest.mark.parametrize("name", ["indptr", "indices", "last_page_len"])
def test_under_graphs_a_buffer_that_was_not_filled(name: str) -> None:
    wrapper, buffers = graph_wrapper(ONE, "dec")
    plan(wrapper, ONE)
    run(wrapper, ONE)
    before = buffers[f"{name}_buffer"].clone()
    fill(buffers, TWO)
    buffers[f"{name}_buffer"].copy_(before)
    fast(wrapper, TWO)
    error = refused("buffer_not_filled", lambda: run(wrapper, TWO))
    assert error.argument == f"{name}_buffer"


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_faithful_under_graphs_the_batch_in_the_buffers_is_computed(path: str) -> None:
    """Measured: not one bit of the batch that fast_decode_plan was given, also where only a part was not filled."""
    with mode.use("faithful"):
        wrapper, buffers = graph_wrapper(ONE, path)
        plan(wrapper, ONE)
        run(wrapper, ONE)
        fast(wrapper, TWO)
        assert torch.equal(run(wrapper, TWO), plan_and_run(path, ONE.but(q=TWO.q, k=TWO.k, v=TWO.v)))
        fill(buffers, TWO)
        assert torch.equal(run(wrapper, TWO), plan_and_run(path, TWO))
        buffers["indices_buffer"][: len(ONE.indices)] = ONE.indices
        fast(wrapper, TWO)
        mixed = TWO.but(indices=buffers["indices_buffer"][: len(TWO.indices)].clone())
        assert torch.equal(run(wrapper, TWO), plan_and_run(path, mixed))


def test_under_graphs_only_the_buffers_are_read() -> None:
    """Of the other arrays not more than their lengths: their types and strides are no matter."""
    wrapper, buffers = graph_wrapper(ONE, "dec")
    plan(wrapper, ONE)
    run(wrapper, ONE)
    fill(buffers, TWO)
    fast(wrapper, TWO.but(indices=TWO.indices.long(), last=TWO.last.long()))
    assert torch.equal(run(wrapper, TWO), plan_and_run("dec", TWO))


def test_under_graphs_the_batch_is_as_large_as_the_buffers() -> None:
    wrapper, _ = graph_wrapper(ONE, "dec")
    plan(wrapper, ONE)
    run(wrapper, ONE)
    with pytest.raises(ValueError, match="The batch size should be fixed in cudagraph mode"):
        fast(wrapper, make_batch((3, 4), seed=3))


def test_an_override_that_says_something_else() -> None:
    wrapper = wrapper_for("dec")
    plan(wrapper, ONE)
    run(wrapper, ONE)
    refused("fast_plan_override", lambda: fast(wrapper, TWO, global_override_indptr_cpu=ONE.indptr))


OVERRIDES = {
    "too short, nothing split": ([0, 1, 2, 6], "harmless", "harmless"),
    "too long, split": ([0, 60, 200, 600], "hangs", "harmless"),
    "too long for one, split": ([0, 3, 5, 4000], "hangs", "harmless"),
}
"""The first two as measured for lengths of (40, 17, 5); what CUDA cores and tensor cores did."""


@pytest.mark.parametrize("path", DECODE_PATHS)
@pytest.mark.parametrize("name", OVERRIDES)
def test_the_schedule_is_that_of_the_override(name: str, path: str) -> None:
    sums, *outcomes = OVERRIDES[name]
    outcome = outcomes[DECODE_PATHS.index(path)]
    batch = make_batch((40, 17, 5))
    wrapper = planned_once(path, batch)
    wrapper.reset_workspace_buffer(
        torch.empty(64 << 20, dtype=torch.uint8), torch.empty(1 << 20, dtype=torch.uint8)
    )

    def overridden() -> None:
        fast(wrapper, batch, global_override_indptr_cpu=torch.tensor(sums, dtype=torch.int32))

    error = refused("fast_plan_override", overridden)
    clause = {"harmless": "happens to be right", "hangs": "does not come back"}[outcome]
    assert clause in error.real["en"].split(". ")[0]
    with mode.use("faithful"):
        if outcome == "hangs":
            refused("not_modelled", overridden)
            return
        overridden()
        assert torch.equal(run(wrapper, batch), plan_and_run(path, batch))


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_faithful_an_override_too_short_for_its_chunks_cuts_short(path: str) -> None:
    """As under a stale plan, which was measured; chunks are here because another request is long."""
    batch = make_batch((9000, 3000), spare_pages=3)
    wrapper = planned_once(path, make_batch((40, 17)))
    wrapper.reset_workspace_buffer(
        torch.empty(64 << 20, dtype=torch.uint8), torch.empty(1 << 20, dtype=torch.uint8)
    )
    pages = int(batch.indptr[1])
    with mode.use("faithful"):
        fast(
            wrapper, batch, global_override_indptr_cpu=torch.tensor([0, pages, pages + 2], dtype=torch.int32)
        )
        out = run(wrapper, batch)
    right = plan_and_run("fa3", batch)  # which needs no workspace
    assert torch.equal(out[0], right[0])
    assert not torch.allclose(out[1], right[1], atol=5e-3)


def test_an_override_of_another_form_was_not_measured() -> None:
    for wrong in ([0, 3, 5], [1, 3, 5, 11], [0, 5, 3, 11]):
        wrapper = planned_once("dec")
        given = torch.tensor(wrong, dtype=torch.int32)
        refused("fast_plan_override", lambda w=wrapper, g=given: fast(w, TWO, global_override_indptr_cpu=g))
        with mode.use("faithful"):
            refused("not_modelled", lambda w=wrapper, g=given: fast(w, TWO, global_override_indptr_cpu=g))


def test_page_lists_are_checked_as_in_plan() -> None:
    wrapper = wrapper_for("dec")
    plan(wrapper, ONE)
    run(wrapper, ONE)
    refused("last_page_len_too_large", lambda: fast(wrapper, TWO.but(last=TWO.last + 99)))
    assert wrapper.plan_count == 1


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_faithful_no_module_is_built_and_cuda_cores_add_no_lengths(path: str) -> None:
    """So another type of indptr meets the check of the compiled module, and a missing 0 not even torch's."""
    long, short = TWO.but(indptr=TWO.indptr.long()), TWO.but(indptr=TWO.indptr[1:].clone())
    refused("kv_indptr_not_int32", lambda: fast(planned_once(path), long))
    refused("kv_indptr_no_leading_zero", lambda: fast(planned_once(path), short))
    with mode.use("faithful"):
        wrapper = planned_once(path)
        if path == "dec":
            with pytest.raises(RuntimeError, match=r"indptr.dtype\(\) == dl_int32 \(int64 vs. int32\)"):
                fast(wrapper, long)
            refused("not_modelled", lambda: fast(wrapper, short))
            return
        refused("not_modelled", lambda: fast(wrapper, long))
        with pytest.raises(RuntimeError, match="The size of tensor a"):
            fast(wrapper, short)
