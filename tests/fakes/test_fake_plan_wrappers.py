"""`plan_info` on every wrapper, and workspaces that are too small: measured words, strict and faithful."""

from __future__ import annotations

from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from paged_batches import cumulated, i32

PATHS = ("dec", "tc", "fa2", "fa3")


def floats(size: int) -> torch.Tensor:
    """A float workspace of that many bytes."""
    return torch.empty(size, dtype=torch.uint8)


def wrapper_of(path: str, size: int = 128 << 20, graph: dict[str, torch.Tensor] | None = None) -> Any:
    options: dict[str, Any] = {"use_cuda_graph": graph is not None}
    if path in ("dec", "tc"):
        named = {f"paged_kv_{k}_buffer": t for k, t in (graph or {}).items() if k != "qo"}
        return flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            floats(size), use_tensor_cores=path == "tc", **options, **named
        )
    names = {"qo": "qo_indptr_buf"} | {k: f"paged_kv_{k}_buf" for k in ("indptr", "indices", "last_page_len")}
    named = {names[k]: t for k, t in (graph or {}).items()}
    return flashinfer.BatchPrefillWithPagedKVCacheWrapper(floats(size), backend=path, **options, **named)


def call(
    method: Any,
    path: str,
    kv_lens: list[int],
    q_lens: list[int] | None = None,
    *,
    page_size: int = 16,
    heads: tuple[int, int] = (32, 8),
    head_dim: int = 128,
    **options: Any,
) -> Any:
    """Call plan, or a method that takes what it takes, with the arrays of such a batch."""
    pages = [-(-n // page_size) for n in kv_lens]
    last = [n - (p - 1) * page_size if p else 0 for n, p in zip(kv_lens, pages, strict=True)]
    arrays = (cumulated(pages), torch.arange(sum(pages), dtype=torch.int32), i32(last))
    if path in ("fa2", "fa3"):
        arrays = (cumulated(q_lens or [1] * len(kv_lens)), *arrays)
    return method(*arrays, *heads, head_dim, page_size, **options)


def plan(wrapper: Any, *args: Any, **options: Any) -> None:
    call(wrapper.plan, *args, **options)


@pytest.mark.parametrize("path", PATHS)
def test_plan_info_is_that_of_the_last_plan(path: str) -> None:
    wrapper = wrapper_of(path)
    assert wrapper.plan_info is None
    plan(wrapper, path, [5000, 20])
    info = wrapper.plan_info
    assert info.path == path
    assert info.num_sms == 132
    assert {item.request for item in info.work} == {0, 1}
    assert info.split_kv == (path != "fa3")
    assert wrapper.plan_info is info
    wrapper._plan.has_run = True
    plan(wrapper, path, [20])
    assert wrapper.plan_info is not info
    assert wrapper.plan_info.split_kv is False
    assert wrapper.plan_info.work[0].kv == (0, 20)


MEASURED = (
    "Buffer overflow when allocating memory for batch_decode_tmp_v with size 2097152 and alignment 16, but only 1048576 "
    "bytes available in AlignedAllocator. Increase the workspace buffer size."
)
"""64 requests of 2,048 tokens with 1 MB of workspace, on an H200."""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_decode_says_what_the_library_said(dtype: torch.dtype) -> None:
    wrapper = wrapper_of("dec", 1 << 20)
    with pytest.raises(KernelError) as caught:
        plan(wrapper, "dec", [2048] * 64, q_data_type=dtype)
    assert caught.value.code == "workspace_too_small"
    assert caught.value.argument == "float_workspace_buffer"
    assert caught.value.params["needed"] == 2097152 + 16384
    for lang in ("en", "zh"):
        assert MEASURED in caught.value.text(lang)
        assert "2113536" in caught.value.text(lang)
    with mode.use("faithful"), pytest.raises(RuntimeError, match="Error in function 'aligned_alloc'") as raw:
        plan(wrapper, "dec", [2048] * 64, q_data_type=dtype)
    assert MEASURED in str(raw.value)
    assert not isinstance(raw.value, KernelError)


@pytest.mark.parametrize("path", ["dec", "tc", "fa2"])
def test_the_least_workspace_is_enough_and_a_byte_less_is_not(path: str) -> None:
    wrapper = wrapper_of(path)
    plan(wrapper, path, [9000, 3, 700], [5, 1, 2])
    least = wrapper.plan_info.float_bytes
    assert least > 0
    plan(wrapper_of(path, least), path, [9000, 3, 700], [5, 1, 2])
    with pytest.raises(KernelError, match="_tmp_s with size"):
        plan(wrapper_of(path, least - 1), path, [9000, 3, 700], [5, 1, 2])


@pytest.mark.parametrize("path", PATHS)
def test_a_plan_that_fails_leaves_the_one_before(path: str) -> None:
    wrapper = wrapper_of(path, 1 << 20)
    plan(wrapper, path, [100])
    before, info, options = wrapper._plan, wrapper.plan_info, wrapper._window_left
    before.has_run = True
    wrapper.reset_workspace_buffer(floats(16), floats(16))
    with pytest.raises(KernelError) as caught:
        plan(wrapper, path, [70000] * 9, window_left=60000)
    assert caught.value.argument == "_int_workspace_buffer"
    assert (wrapper._plan, wrapper.plan_info, wrapper._window_left) == (before, info, options)
    assert wrapper.plan_count == 1


def test_only_a_split_needs_a_workspace() -> None:
    for path in PATHS:
        plan(wrapper_of(path, 0), path, [100, 17, 1])
    plan(wrapper_of("fa2", 0), "fa2", [90000], disable_split_kv=True)
    plan(wrapper_of("fa3", 0), "fa3", [90000])


def test_what_was_not_measured_is_not_checked() -> None:
    for options in ({"head_dim": 80}, {"pos_encoding_mode": "ROPE_LLAMA"}):
        wrapper = wrapper_of("dec", 0)
        plan(wrapper, "dec", [90000], **options)
        assert "not measured" in wrapper.plan_info.unknown
        assert wrapper.plan_info.float_bytes is None


@pytest.mark.parametrize("path", ["dec", "tc", "fa2"])
def test_under_graphs_a_plan_of_any_length_needs_the_same(path: str) -> None:
    buffers = {
        "qo": torch.zeros(3, dtype=torch.int32),
        "indptr": torch.zeros(3, dtype=torch.int32),
        "indices": torch.zeros(10000, dtype=torch.int32),
        "last_page_len": torch.zeros(2, dtype=torch.int32),
    }
    wrapper = wrapper_of(path, graph=buffers)
    needs = set()
    for lengths in ([1, 1], [60000, 9]):
        plan(wrapper, path, lengths, [4, 4] if lengths == [1, 1] else [1, 2], heads=(8, 2))
        info = wrapper.plan_info
        needs.add((info.float_bytes, info.int_bytes, info.padded_batch_size))
        assert info.split_kv
    assert len(needs) == 1


def test_a_planner_that_refuses_is_an_error_of_its_own() -> None:
    buffers = {
        "indptr": torch.zeros(2, dtype=torch.int32),
        "indices": torch.zeros(10000, dtype=torch.int32),
        "last_page_len": torch.zeros(1, dtype=torch.int32),
    }
    wrapper = wrapper_of("tc", graph=buffers)
    with pytest.raises(KernelError, match="consider disabling cuda graph") as caught:
        plan(wrapper, "tc", [100000], fixed_split_size=1)
    assert (caught.value.code, caught.value.argument) == ("planner_refuses", "fixed_split_size")


def test_wrong_metadata_has_no_schedule() -> None:
    """Faithful mode: what a GPU makes of it was measured in its results, not in its schedule."""
    with mode.use("faithful"):
        wrapper = wrapper_of("dec", 0)
        wrapper.plan(i32([0, 5, 3]), torch.arange(5, dtype=torch.int32), i32([1, 1]), 32, 8, 128, 16)
        assert wrapper.plan_info is None


def test_ragged_prefill_counts_tokens() -> None:
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(floats(64 << 20), backend="fa2")
    wrapper.plan(cumulated([4, 1]), cumulated([9000, 30]), 8, 2, 64, causal=True)
    info = wrapper.plan_info
    assert info.path == "fa2"
    assert info.split_kv
    assert max(item.kv[1] for item in info.work) == 9000
    small = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(floats(64), backend="fa2")
    with pytest.raises(KernelError, match="batch_prefill_tmp_v"):
        small.plan(cumulated([4, 1]), cumulated([9000, 30]), 8, 2, 64, causal=True)


@pytest.mark.parametrize("path", ["dec", "tc", "fa2"])
@pytest.mark.parametrize("graph", [False, True])
def test_workspace_size_is_asked_without_changing_anything(path: str, graph: bool) -> None:
    buffers = {
        "qo": torch.zeros(3, dtype=torch.int32),
        "indptr": torch.zeros(3, dtype=torch.int32),
        "indices": torch.zeros(10000, dtype=torch.int32),
        "last_page_len": torch.zeros(2, dtype=torch.int32),
    }
    wrapper = wrapper_of(path, 0, buffers if graph else None)
    sizes = call(wrapper.workspace_size, path, [9000, 60], [7, 2], window_left=3000, logits_soft_cap=9.0)
    assert wrapper.plan_count == 0
    assert wrapper.plan_info is None
    assert all(int(buffer.sum()) == 0 for buffer in buffers.values())
    assert sizes[0] > 0
    wrapper.reset_workspace_buffer(floats(sizes[0]), floats(sizes[1]))
    plan(wrapper, path, [9000, 60], [7, 2], window_left=3000, logits_soft_cap=9.0)
    assert (wrapper.plan_info.float_bytes, wrapper.plan_info.int_bytes) == sizes


def test_workspace_size_is_refused_where_the_library_has_none() -> None:
    for backend in ("fa3", "auto"):
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(floats(0), backend=backend)
        with pytest.raises(NotImplementedError, match="not available for prefill backend 'fa3'"):
            call(wrapper.workspace_size, "fa3", [100], [3])
        assert wrapper._backend == backend
    with pytest.raises(NotImplementedError, match="not measured"):
        call(wrapper_of("dec").workspace_size, "dec", [100], head_dim=80)
    with pytest.raises(KernelError, match="last_page_len"):
        wrapper_of("tc").workspace_size(i32([0, 1]), i32([0]), i32([17]), 8, 2, 64, 16)


def test_a_cascade_has_a_schedule_for_each_level() -> None:
    wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(2, floats(64 << 20))
    assert wrapper.plan_info == (None, None)
    shared, own = torch.arange(100, dtype=torch.int32), torch.arange(100, 103, dtype=torch.int32)
    wrapper.plan(
        [cumulated([3]), cumulated([1, 1, 1])],
        [cumulated([100]), cumulated([1, 1, 1])],
        [shared, own],
        [i32([16]), i32([1, 2, 3])],
        *(8, 2, 64, 16),
    )
    first, second = wrapper.plan_info
    assert {item.request for item in first.work} == {0}
    assert {item.request for item in second.work} == {0, 1, 2}


def test_sparse_masks_have_a_schedule() -> None:
    """Rows of blocks are its requests, blocks its pages."""
    wrapper = flashinfer.BlockSparseAttentionWrapper(floats(64 << 20))
    sizes = {"M": 128, "N": 4096, "R": 64, "C": 64, "num_qo_heads": 8, "num_kv_heads": 2, "head_dim": 64}
    wrapper.plan(cumulated([60, 2]), torch.arange(62, dtype=torch.int32) % 64, **sizes)
    assert [item.kv[1] for item in wrapper.plan_info.work if item.head in (0, None)] == [3840, 128]
