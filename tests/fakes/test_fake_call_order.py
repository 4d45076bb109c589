"""Plan and run in time: what a right engine does is never refused, what races on a GPU is.

Hazards that nobody measured (an overwritten schedule, a second plan too early, a stale schedule) are
refused in faithful mode as not modelled; a tensor changed too early is acted out as the copy that came
too late.
"""

from __future__ import annotations

from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from paged_batches import (
    DECODE_PATHS,
    PATHS,
    PREFILL_PATHS,
    PagedBatch,
    i32,
    make_batch,
    plan,
    plan_and_run,
    wrapper_for,
)


def refused(code: str, call: Any) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    assert caught.value.code == code
    return caught.value


def run(wrapper: Any, batch: PagedBatch) -> torch.Tensor:
    out: torch.Tensor = wrapper.run(batch.q, (batch.k, batch.v))
    return out


def graph_wrapper(batch: PagedBatch, tensor_cores: bool = False) -> tuple[Any, dict[str, torch.Tensor]]:
    buffers = {
        "indptr_buffer": torch.zeros(len(batch.kv_lens) + 1, dtype=torch.int32),
        "indices_buffer": torch.zeros(64, dtype=torch.int32),
        "last_page_len_buffer": torch.zeros(len(batch.kv_lens), dtype=torch.int32),
    }
    workspace = torch.empty(8 << 20, dtype=torch.uint8)
    return flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(
        workspace, **buffers, use_tensor_cores=tensor_cores
    ), buffers


def test_an_engine_that_takes_turns_is_never_refused() -> None:
    """Prefill and decode wrappers over one int workspace, 28 layers a plan, batches of every size, the
    metadata tensors thrown away or reused after their last run: as chapter 17's backend works."""
    prefill = wrapper_for("fa2")
    decode = wrapper_for("tc")
    decode._int_workspace_buffer = prefill._int_workspace_buffer
    graphs = {}
    for size in (1, 2, 4):
        graphs[size], _ = graph_wrapper(make_batch([1] * size), tensor_cores=True)
        graphs[size]._int_workspace_buffer = prefill._int_workspace_buffer
        graphs[size]._backend = "fa2"
    ones = torch.ones(8, dtype=torch.int32)
    runs = 0
    for step in range(4):
        batch = make_batch((5 + step, 9, 30), (5, 4, 1), page_size=1, dtype=torch.float32, seed=step)
        batch = batch.but(seq_lens=i32(batch.kv_lens), last=ones[:3])
        plan(prefill, batch, kv_data_type=torch.float32, pos_encoding_mode="NONE", non_blocking=True)
        first = run(prefill, batch)
        for _ in range(27):
            assert torch.equal(run(prefill, batch), first)
        batch.indptr.zero_()  # after its last run a tensor is the caller's again
        sizes = [1, 2, 4, 2]
        tokens = make_batch([3 + step] * sizes[step], page_size=1, dtype=torch.float32, seed=step)
        tokens = tokens.but(seq_lens=i32(tokens.kv_lens), last=ones[: sizes[step]])
        for wrapper in (decode, graphs[sizes[step]]):
            plan(wrapper, tokens, data_type=torch.float32, kv_data_type=torch.float32)
            for _ in range(28):
                run(wrapper, tokens)
        runs += 28
    assert (prefill.plan_count, prefill.run_count) == (4, runs)
    assert (decode.plan_count, decode.run_count) == (4, runs)


@pytest.mark.parametrize("path", PATHS)
def test_counters_and_the_last_plan_are_readable(path: str) -> None:
    batch = make_batch((5, 20))
    wrapper = wrapper_for(path)
    assert (wrapper.plan_count, wrapper.run_count, wrapper.last_plan) == (0, 0, None)
    plan(wrapper, batch, sm_scale=0.25)
    run(wrapper, batch)
    run(wrapper, batch)
    assert (wrapper.plan_count, wrapper.run_count) == (1, 2)
    assert wrapper.last_plan["sm_scale"] == 0.25
    kept = wrapper.last_plan["indptr" if path in DECODE_PATHS else "paged_kv_indptr"]
    assert torch.equal(kept, batch.indptr)
    assert kept is not batch.indptr
    wrong = batch.but(last=i32([1, 99]))
    refused("last_page_len_too_large", lambda: plan(wrapper, wrong))
    assert wrapper.plan_count == 1
    assert wrapper.begin_forward.__func__ is wrapper.plan.__func__


CHANGED = [(path, name) for path in PATHS for name in ("indptr", "indices", "last")]
CHANGED += [(path, "qo_indptr") for path in PREFILL_PATHS]


@pytest.mark.parametrize(("path", "name"), CHANGED)
def test_a_tensor_changed_before_the_run(path: str, name: str) -> None:
    def planned(non_blocking: bool) -> tuple[Any, PagedBatch]:
        batch = make_batch((20, 33), None if path in DECODE_PATHS else (2, 2))
        wrapper = wrapper_for(path)
        plan(wrapper, batch, non_blocking=non_blocking)
        tensor = getattr(batch, name)
        other = {"indptr": i32([0, 1, 5]), "last": i32([9, 9]), "qo_indptr": i32([0, 1, 4])}
        tensor.copy_(other.get(name, tensor.flip(0)))
        return wrapper, batch

    right = plan_and_run(path, make_batch((20, 33), None if path in DECODE_PATHS else (2, 2)))
    wrapper, batch = planned(non_blocking=True)
    error = refused("changed_after_plan", lambda: run(wrapper, batch))
    assert error.argument.endswith({"last": "last_page_len"}.get(name, name))
    wrapper, batch = planned(non_blocking=False)
    assert torch.equal(run(wrapper, batch), right)
    with mode.use("faithful"):
        wrapper, batch = planned(non_blocking=True)
        late = run(wrapper, batch)
    assert late.shape == right.shape
    if not (name == "last" and path == "fa3"):  # fa3 took its lengths at plan
        assert not torch.allclose(late, right, atol=1e-3)


def test_a_changed_row_of_the_table_behind_the_indices_counts_only_where_it_is_used() -> None:
    table = torch.arange(64, dtype=torch.int32).view(4, 16)
    batch = make_batch((9,), page_size=1, spare_pages=60).but(indices=table[1, :9])
    wrapper = wrapper_for("dec")
    plan(wrapper, batch)
    table[2].zero_()
    table[1, 9:].zero_()
    run(wrapper, batch)
    table[1, 0] = 3
    refused("changed_after_plan", lambda: run(wrapper, batch))


def test_a_plan_overwritten_in_a_shared_int_workspace() -> None:
    batch = make_batch((20, 33))
    first, second = wrapper_for("dec"), wrapper_for("tc")
    second._int_workspace_buffer = first._int_workspace_buffer
    plan(first, batch)
    plan(second, batch)
    run(second, batch)
    refused("plan_overwritten", lambda: run(first, batch))
    with mode.use("faithful"):
        refused("not_modelled", lambda: run(first, batch))
    plan(first, batch)
    run(first, batch)


def test_wrappers_with_workspaces_of_their_own_dont_disturb_each_other() -> None:
    batch = make_batch((20, 33))
    first, second = wrapper_for("dec"), wrapper_for("tc")
    plan(first, batch)
    plan(second, batch)
    run(first, batch)
    run(second, batch)


@pytest.mark.parametrize("shared", [False, True])
def test_a_second_plan_before_the_first_ran(shared: bool) -> None:
    batch = make_batch((20, 33))
    first = wrapper_for("dec")
    second = wrapper_for("dec") if shared else first
    second._pin_memory_int_workspace_buffer = first._pin_memory_int_workspace_buffer
    plan(first, batch)
    refused("second_plan_before_run", lambda: plan(second, batch))
    with mode.use("faithful"):
        refused("not_modelled", lambda: plan(second, batch))
    run(first, batch)
    plan(second, batch, non_blocking=False)
    plan(second, batch)


def test_graph_buffers_hold_the_plan_and_replays_read_them() -> None:
    batch = make_batch((20, 33, 48))
    wrapper, buffers = graph_wrapper(batch)
    plan(wrapper, batch)
    assert torch.equal(buffers["indptr_buffer"], batch.indptr)
    assert torch.equal(buffers["indices_buffer"][: len(batch.indices)], batch.indices)
    assert torch.equal(run(wrapper, batch), plan_and_run("dec", batch))
    plan(wrapper, batch)  # a replay is no call of run: plans may follow each other
    longer = make_batch((48, 1, 20), seed=3)
    plan(wrapper, longer)
    assert torch.equal(run(wrapper, longer), plan_and_run("dec", longer))


def test_a_length_that_grows_within_its_page_needs_no_new_plan() -> None:
    batch = make_batch((20, 33))
    wrapper, buffers = graph_wrapper(batch)
    plan(wrapper, batch)
    assert torch.equal(run(wrapper, batch), plan_and_run("dec", batch))
    buffers["last_page_len_buffer"].copy_(i32([5, 2]))
    grown = batch.but(last=i32([5, 2]))
    assert torch.equal(run(wrapper, batch), plan_and_run("dec", grown))


def test_a_stale_plan_under_graphs() -> None:
    batch = make_batch((20, 33))
    wrapper, buffers = graph_wrapper(batch)
    plan(wrapper, batch)
    buffers["indptr_buffer"].copy_(i32([0, 3, 6]))
    error = refused("stale_plan", lambda: run(wrapper, batch))
    assert error.params["position"] == 1
    with mode.use("faithful"):
        refused("not_modelled", lambda: run(wrapper, batch))


def test_graph_wrappers_keep_their_batch_size_and_buffers() -> None:
    workspace = torch.empty(8 << 20, dtype=torch.uint8)
    batch = make_batch((20, 33, 48))
    wrapper, _ = graph_wrapper(make_batch((1, 1, 1, 1)))
    with pytest.raises(ValueError, match=r"the runtime batch size 3  mismatches .* initialization 4"):
        plan(wrapper, batch)
    wrapper, _ = graph_wrapper(batch)
    many = batch.but(indices=torch.zeros(65, dtype=torch.int32))
    with pytest.raises(ValueError, match="The size of indices should be less than or equal to"):
        plan(wrapper, many)
    with pytest.raises(ValueError, match=r"paged_kv_indptr_buffer should be a torch\.Tensor"):
        flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, use_cuda_graph=True)
    with pytest.raises(ValueError, match="The size of paged_kv_indptr_buffer should be batch_size \\+ 1"):
        flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(
            workspace, torch.zeros(3).int(), torch.zeros(9).int(), torch.zeros(3).int()
        )


def prefill_graph(rows: int) -> Any:
    return flashinfer.BatchPrefillWithPagedKVCacheWrapper(
        torch.empty(8 << 20, dtype=torch.uint8),
        use_cuda_graph=True,
        backend="fa2",
        qo_indptr_buf=torch.zeros(rows + 1, dtype=torch.int32),
        paged_kv_indptr_buf=torch.zeros(rows + 1, dtype=torch.int32),
        paged_kv_indices_buf=torch.zeros(16, dtype=torch.int32),
        paged_kv_last_page_len_buf=torch.zeros(rows, dtype=torch.int32),
    )


def test_prefill_under_graphs() -> None:
    batch = make_batch((20, 33), (2, 3))
    wrapper = prefill_graph(2)
    plan(wrapper, batch)
    assert torch.equal(run(wrapper, batch), plan_and_run("fa2", batch))
    with pytest.raises(ValueError, match=r"rows in qo_indptr 6 in cuda graph mode cannot exceed .* 5"):
        plan(wrapper, make_batch((20, 33), (3, 3)))
    with pytest.raises(ValueError, match="runtime batch size 1 mismatches the batch size 2"):
        plan(wrapper, make_batch((20,), (3,)))


def test_graph_buffers_take_any_integer_type_of_indices() -> None:
    """They are copied into the caller's int32 buffers, so only the arrays that plan reads matter."""
    batch = make_batch((20, 33))
    wrapper, _ = graph_wrapper(batch)
    wide = batch.but(indices=batch.indices.long(), last=batch.last.long())
    plan(wrapper, wide)
    assert torch.equal(run(wrapper, batch), plan_and_run("dec", batch))
    refused("kv_indptr_not_int32", lambda: plan(wrapper, batch.but(indptr=batch.indptr.long())))


def test_reset_workspace_buffer() -> None:
    batch = make_batch((20, 33))
    wrapper = wrapper_for("dec")
    plan(wrapper, batch)
    wrapper.reset_workspace_buffer(torch.empty(64, dtype=torch.uint8), torch.empty(64, dtype=torch.uint8))
    refused("plan_overwritten", lambda: run(wrapper, batch))
    plan(wrapper, batch)
    run(wrapper, batch)
