"""fast_decode_plan: what a right engine does with it is never refused, what it leaves undone is told."""

from __future__ import annotations

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


ONE, TWO = make_batch((17, 5, 40), seed=1), make_batch((33, 16, 2), seed=2)


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


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("q_data_type", {"q_data_type": torch.bfloat16}),
        ("window_left", {"window_left": 7}),
        ("logits_soft_cap", {"logits_soft_cap": 30.0}),
    ],
)
def test_the_kernel_is_that_of_the_last_plan(argument: str, told: dict[str, Any]) -> None:
    wrapper = wrapper_for("dec")
    plan(wrapper, ONE)
    run(wrapper, ONE)
    assert refused("fast_plan_kernel", lambda: fast(wrapper, TWO, **told)).argument == argument
    with mode.use("faithful"):
        refused("not_modelled", lambda: fast(wrapper, TWO, **told))


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
    assert refused("changed_after_plan", lambda: run(wrapper, batch)).argument == "indices"
    with mode.use("faithful"):
        wrapper, batch = planned()
        right = run(wrapper, batch)
        batch.indices.copy_(batch.indices.flip(0))
        assert torch.equal(run(wrapper, batch), plan_and_run(path, batch))
        assert not torch.equal(run(wrapper, batch), right)


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


def test_page_lists_are_checked_as_in_plan() -> None:
    wrapper = wrapper_for("dec")
    plan(wrapper, ONE)
    run(wrapper, ONE)
    refused("last_page_len_too_large", lambda: fast(wrapper, TWO.but(last=TWO.last + 99)))
    assert wrapper.plan_count == 1
