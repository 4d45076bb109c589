"""Cascades: what the real wrapper returned on an H200, and what is refused."""

from __future__ import annotations

from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from paged_batches import i32
from test_fake_golden import check_out, params


def wrapper_of(levels: int = 2, **options: Any) -> flashinfer.MultiLevelCascadeAttentionWrapper:
    return flashinfer.MultiLevelCascadeAttentionWrapper(
        levels, torch.empty(1 << 23, dtype=torch.uint8), **options
    )


def planned(case: dict[str, Any], t: dict[str, torch.Tensor], **changes: Any) -> Any:
    wrapper = wrapper_of(case["num_levels"])
    arrays = {
        name: [t[f"{key}{level}"] for level in range(case["num_levels"])]
        for name, key in (
            ("qo_indptr_arr", "qo"),
            ("paged_kv_indptr_arr", "indptr"),
            ("paged_kv_indices_arr", "indices"),
            ("paged_kv_last_page_len", "last"),
        )
    }
    sizes = (case["num_qo_heads"], case["num_kv_heads"], case["head_dim"], case["page_size"])
    names = ("num_qo_heads", "num_kv_heads", "head_dim", "page_size")
    given = {**arrays, **dict(zip(names, sizes, strict=True)), "causal": case["causal"], **changes}
    wrapper.plan(**given, q_data_type=t["q"].dtype)
    return wrapper


CASES = params("cascade")
CASE, TENSORS = CASES[0].values


@pytest.mark.parametrize(("case", "t"), CASES)
def test_what_an_h200_returned(case: dict[str, Any], t: dict[str, torch.Tensor]) -> None:
    wrapper = planned(case, t)
    check_out(wrapper.run(t["q"], t["kv"]), t["out"])
    check_out(wrapper.forward(t["q"], t["kv"].unbind(1)), t["out"])
    assert wrapper.run_count == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("qo_indptr_arr", "argument 2 is shorter than argument 1"),
        ("paged_kv_last_page_len", "argument 5 is shorter than arguments 1-4"),
    ],
)
def test_one_array_a_level(name: str, message: str) -> None:
    key = {"qo_indptr_arr": "qo", "paged_kv_last_page_len": "last"}[name]
    with pytest.raises(ValueError, match=message) as caught:
        planned(CASE, TENSORS, **{name: [TENSORS[f"{key}1"]]})
    assert isinstance(caught.value, KernelError)
    assert caught.value.code == "cascade_levels_count"
    with pytest.raises(ValueError, match=message), mode.use("faithful"):
        planned(CASE, TENSORS, **{name: [TENSORS[f"{key}1"]]})


def test_every_level_covers_all_rows() -> None:
    short = [i32([0, 3]), TENSORS["qo1"]]
    with pytest.raises(KernelError) as caught:
        planned(CASE, TENSORS, qo_indptr_arr=short)
    assert (caught.value.code, caught.value.argument) == ("cascade_level_rows", "qo_indptr_arr[0]")
    with mode.use("faithful"):
        wrapper = planned(CASE, TENSORS, qo_indptr_arr=short)
        with pytest.raises(ValueError, match="does not match qo_indptr"):
            wrapper.run(TENSORS["q"], TENSORS["kv"])


def test_a_levels_own_mistake_is_told_by_its_plan() -> None:
    with pytest.raises(KernelError) as caught:
        planned(CASE, TENSORS, paged_kv_last_page_len=[i32([0]), TENSORS["last1"]])
    assert caught.value.code == "last_page_len_zero"
    assert caught.value.place == "paged_kv_last_page_len[0][0] = 0"
    assert caught.value.what["en"].startswith("paged_kv_last_page_len[0] is 0 for request 0")


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("name", ["qo_indptr_arr", "paged_kv_indptr_arr", "paged_kv_indices_arr"])
def test_a_mistake_is_told_with_its_level(name: str, level: int) -> None:
    key = {"qo_indptr_arr": "qo", "paged_kv_indptr_arr": "indptr", "paged_kv_indices_arr": "indices"}[name]
    arrays = [TENSORS[f"{key}0"], TENSORS[f"{key}1"]]
    arrays[level] = arrays[level].long()
    with pytest.raises(KernelError) as caught:
        planned(CASE, TENSORS, **{name: arrays})
    assert caught.value.argument == f"{name}[{level}]"


def test_under_cuda_graphs_each_level_has_its_buffers() -> None:
    buffers = {
        "qo_indptr_buf_arr": [i32([0] * 2), i32([0] * 5)],
        "paged_kv_indptr_buf_arr": [i32([0] * 2), i32([0] * 5)],
        "paged_kv_indices_buf_arr": [i32([0] * 40), i32([0] * 40)],
        "paged_kv_last_page_len_buf_arr": [i32([0]), i32([0] * 4)],
    }
    wrapper = wrapper_of(use_cuda_graph=True, **buffers)
    assert wrapper.is_cuda_graph_enabled
    arrays = [[TENSORS[f"{key}{level}"] for level in (0, 1)] for key in ("qo", "indptr", "indices", "last")]
    wrapper.plan(*arrays, 4, 2, 128, CASE["page_size"])
    check_out(wrapper.run(TENSORS["q"], TENSORS["kv"]), TENSORS["out"])
    assert torch.equal(buffers["qo_indptr_buf_arr"][1], TENSORS["qo1"])
    with pytest.raises(ValueError, match="shorter"):
        wrapper_of(use_cuda_graph=True, **{**buffers, "qo_indptr_buf_arr": [i32([0, 0])]})


def test_workspaces_are_reset_level_by_level() -> None:
    wrapper = planned(CASE, TENSORS)
    fresh = [torch.empty(1 << 16, dtype=torch.uint8) for _ in range(3)]
    wrapper.reset_workspace_buffer(fresh[0], fresh[1:])
    assert wrapper._batch_prefill_wrappers[1]._int_workspace_buffer is fresh[2]
    with pytest.raises(ValueError, match="argument 2 is longer"):
        wrapper.reset_workspace_buffer(fresh[0], fresh)


def test_counters_and_the_last_plan_are_readable() -> None:
    wrapper = wrapper_of()
    assert (wrapper.plan_count, wrapper.run_count, wrapper.last_plan) == (0, 0, None)
    wrapper = planned(CASE, TENSORS)
    wrapper.run(TENSORS["q"], TENSORS["kv"])
    wrapper.run(TENSORS["q"], TENSORS["kv"])
    assert (wrapper.plan_count, wrapper.run_count) == (1, 2)
    kept = wrapper.last_plan["paged_kv_indptr_arr"]
    assert torch.equal(kept[1], TENSORS["indptr1"])
    assert kept[1] is not TENSORS["indptr1"]
