"""Plan and run in time: what a right engine does is never refused, what races on a GPU is.

Faithful mode acts them out: an overwritten and a stale schedule as the kernels follow them, a tensor changed too early as
the copy that came too late. A second plan too early was right where it was measured.
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
        run(first, batch)
    plan(first, batch)
    run(first, batch)


@pytest.mark.parametrize("path", PATHS)
def test_faithful_an_overwritten_plan_is_followed(path: str) -> None:
    """Measured with longer requests over short ones: the first request was right on all but fa3, the others were not."""
    rows = None if path in DECODE_PATHS else (3, 5, 2)
    batch, other = (make_batch(kv, rows, spare_pages=9) for kv in ((40, 17, 5), (900, 17, 2000)))
    first, second = wrapper_for(path), wrapper_for(path)
    for wrapper in (first, second):
        wrapper.reset_workspace_buffer(
            torch.empty(8 << 20, dtype=torch.uint8), torch.empty(1 << 20, dtype=torch.uint8)
        )
    second._int_workspace_buffer = first._int_workspace_buffer
    right = plan_and_run(path, batch)
    with mode.use("faithful"):
        plan(first, batch)
        plan(second, other)
        out = run(first, batch)
        wrong = (out - right).abs().amax(dim=(1, 2)) > 1e-2
        of_first = 1 if rows is None else rows[0]
        assert bool(wrong[of_first:].all())
        assert bool(wrong[:of_first].any()) is (path == "fa3")
        plan(second, batch)  # the same schedule again, in the other's place
        assert torch.equal(run(first, batch), right)
        first.reset_workspace_buffer(first._float_workspace_buffer, torch.empty(1 << 20, dtype=torch.uint8))
        refused("not_modelled", lambda: run(first, batch))  # whatever a new workspace holds


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
    error = refused("second_plan_before_run", lambda: plan(second, batch))
    assert "with indptr on the CPU" in error.real["en"].replace("With", "with")
    with mode.use("faithful"):
        plan(second, batch)
        assert torch.equal(run(second, batch), run(first, batch))
        plan(first, batch)
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


STALE = {
    "stays within its chunk": ((40, 17, 5), (64, 33, 20), "harmless"),
    "grows far": ((40, 17, 5), (12000, 17, 5), "garbage"),
    "outgrows its chunks": ((9000, 170, 50), (12000, 170, 50), "garbage"),
    "leaves chunks empty": ((12000, 170, 50), (3000, 170, 50), "hangs"),
}
"""As measured: the lengths of the plan, those in the buffers at the replay, what CUDA cores did. Tensor cores did the same, but
that empty chunks are no matter to them."""


@pytest.mark.parametrize("name", STALE)
@pytest.mark.parametrize("path", DECODE_PATHS)
def test_a_stale_plan_goes_as_far_as_its_chunks(path: str, name: str) -> None:
    lengths, now, outcome = STALE[name]
    outcome = "harmless" if outcome == "hangs" and path == "tc" else outcome
    old, new = (make_batch(kv, spare_pages=3) for kv in (lengths, now))
    buffers = {
        "indptr_buffer": torch.zeros(4, dtype=torch.int32),
        "indices_buffer": torch.zeros(4096, dtype=torch.int32),
        "last_page_len_buffer": torch.zeros(3, dtype=torch.int32),
    }
    wrapper = flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(
        torch.empty(8 << 20, dtype=torch.uint8), **buffers, use_tensor_cores=path == "tc"
    )
    plan(wrapper, old)
    for buffer, array in zip(buffers.values(), (new.indptr, new.indices, new.last), strict=True):
        buffer[: len(array)].copy_(array)
    error = refused("stale_plan", lambda: run(wrapper, new))
    clause = {"harmless": "happens to be right", "garbage": "wrong numbers", "hangs": "does not come back"}
    assert clause[outcome] in error.real["en"].split(";")[0].split(". ")[0]
    with mode.use("faithful"):
        if outcome == "hangs":
            refused("not_modelled", lambda: run(wrapper, new))
            return
        out = run(wrapper, new)
    right = plan_and_run("fa3", new)  # which needs no workspace
    if outcome == "harmless":
        assert torch.equal(out, right)
        return
    assert not torch.allclose(out[0], right[0], atol=5e-3)
    assert torch.equal(out[1:], right[1:])
    item = max((w for w in wrapper.plan_info.work if w.request == 0), key=lambda w: w.kv[0])
    reach = item.kv[0] + wrapper.plan_info.kv_chunk
    assert reach < now[0]
    pages = -(-reach // 16)
    cut = new.but(
        kv_lens=(reach, *now[1:]),
        indptr=i32([0, pages, *(new.indptr[2:] - new.indptr[1] + pages).tolist()]),
        indices=torch.cat([new.indices[:pages], new.indices[int(new.indptr[1]) :]]),
        last=i32([(reach - 1) % 16 + 1, *new.last[1:].tolist()]),
    )
    assert torch.equal(out, plan_and_run("fa3", cut))


def test_a_stale_plan_of_an_unknown_schedule_was_not_measured() -> None:
    batch = make_batch((20, 33), head_dim=32)
    wrapper, buffers = graph_wrapper(batch)
    plan(wrapper, batch)
    buffers["indptr_buffer"].copy_(i32([0, 3, 6]))
    refused("stale_plan", lambda: run(wrapper, batch))
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
    refused("last_page_len_not_int32", lambda: plan(wrapper, batch.but(last=batch.last.cfloat())))
    refused("indices_not_int32", lambda: plan(wrapper, batch.but(indices=batch.indices.cfloat())))


def test_reset_workspace_buffer() -> None:
    batch = make_batch((20, 33))
    wrapper = wrapper_for("dec")
    plan(wrapper, batch)
    wrapper.reset_workspace_buffer(torch.empty(64, dtype=torch.uint8), torch.empty(64, dtype=torch.uint8))
    refused("plan_overwritten", lambda: run(wrapper, batch))
    plan(wrapper, batch)
    run(wrapper, batch)
