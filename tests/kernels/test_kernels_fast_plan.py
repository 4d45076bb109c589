"""fast_decode_plan after a plan, with and without the buffers of CUDA graphs, against the definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import flashinfer
import pytest
import torch
from dense import Paged, Rule, arena, paged
from place import DEVICE, REAL, close

LENGTHS = ((40, 17, 5), (1, 33, 64), (16, 2, 49))


def batches(seed: int) -> list[Paged]:
    return [paged((1, 1, 1), kv_lens, seed=seed + i) for i, kv_lens in enumerate(LENGTHS)]


def arrays_of(batch: Paged) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return batch.indptr, batch.indices, batch.last


def check(wrapper: Any, batch: Paged) -> None:
    want, _ = batch.want(Rule())
    close(wrapper.run(batch.q, batch.cache("tuple", "NHD")), want, batch.q.dtype)


@pytest.mark.parametrize("tensor_cores", [False, True])
def test_batch_after_batch(tensor_cores: bool) -> None:
    first, *later = batches(1)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(arena(), use_tensor_cores=tensor_cores)
    wrapper.plan(*arrays_of(first), *first.sizes, q_data_type=first.q.dtype)
    check(wrapper, first)
    for batch in later:
        arrays = arrays_of(batch)  # the kernel reads them where they lie: they must live until it has run
        override = batch.indptr.cpu()
        flashinfer.decode.fast_decode_plan(
            wrapper, *arrays, *batch.sizes, q_data_type=batch.q.dtype, global_override_indptr_cpu=override
        )
        check(wrapper, batch)


@pytest.mark.parametrize("tensor_cores", [False, True])
def test_in_the_buffers_of_a_graph(tensor_cores: bool) -> None:
    first, *later = batches(2)
    buffers = [torch.zeros(n, dtype=torch.int32, device=DEVICE) for n in (4, 64, 3)]
    wrapper = flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(
        arena(), *buffers, use_tensor_cores=tensor_cores
    )
    wrapper.plan(*arrays_of(first), *first.sizes, q_data_type=first.q.dtype)
    check(wrapper, first)
    for batch in later:
        for buffer, array in zip(buffers, arrays_of(batch), strict=True):
            buffer[: len(array)].copy_(array)
        flashinfer.decode.fast_decode_plan(
            wrapper, *arrays_of(batch), *batch.sizes, q_data_type=batch.q.dtype
        )
        check(wrapper, batch)


@pytest.mark.parametrize("tensor_cores", [False, True])
def test_without_a_plan_before(tensor_cores: bool) -> None:
    batch = batches(3)[0]
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(arena(), use_tensor_cores=tensor_cores)
    with pytest.raises(RuntimeError, match="has no attribute '_cached_module'"):
        flashinfer.decode.fast_decode_plan(
            wrapper, *arrays_of(batch), *batch.sizes, q_data_type=batch.q.dtype
        )


def planned(first: Paged, tensor_cores: bool) -> Any:
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(arena(), use_tensor_cores=tensor_cores)
    wrapper.plan(*arrays_of(first), *first.sizes, q_data_type=first.q.dtype)
    check(wrapper, first)
    return wrapper


@pytest.mark.parametrize("tensor_cores", [False, True])
def test_buffers_that_nobody_filled(tensor_cores: bool) -> None:
    """Nothing is copied: the batch that still stands in the buffers is computed. The strict fake says so."""
    first, second, _ = batches(4)
    buffers = [torch.zeros(n, dtype=torch.int32, device=DEVICE) for n in (4, 64, 3)]
    wrapper = flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(
        arena(), *buffers, use_tensor_cores=tensor_cores
    )
    wrapper.plan(*arrays_of(first), *first.sizes, q_data_type=first.q.dtype)
    check(wrapper, first)
    arrays = arrays_of(second)
    flashinfer.decode.fast_decode_plan(wrapper, *arrays, *second.sizes, q_data_type=second.q.dtype)
    if REAL:
        check(wrapper, replace(first, q=second.q))
    else:
        with pytest.raises(RuntimeError, match="does not hold the batch"):
            wrapper.run(second.q, first.cache("tuple", "NHD"))


@pytest.mark.parametrize("tensor_cores", [False, True])
def test_pages_that_change_before_the_run(tensor_cores: bool) -> None:
    first, second, _ = batches(5)
    wrapper = planned(first, tensor_cores)
    indptr, indices, last = arrays_of(second)
    flashinfer.decode.fast_decode_plan(
        wrapper, indptr, indices, last, *second.sizes, q_data_type=second.q.dtype
    )
    indices.copy_(indices.flip(0))
    found = iter(indices.tolist())
    turned = replace(second, pages=tuple(tuple(next(found) for _ in row) for row in second.pages))
    if REAL:
        check(wrapper, turned)
    else:
        with pytest.raises(RuntimeError, match="changed after fast_decode_plan"):
            check(wrapper, turned)


@pytest.mark.parametrize("tensor_cores", [False, True])
def test_a_cap_for_a_kernel_that_has_none(tensor_cores: bool) -> None:
    first, second, _ = batches(6)
    wrapper = planned(first, tensor_cores)
    told = {"q_data_type": second.q.dtype, "logits_soft_cap": 1.5}
    arrays = arrays_of(second)
    if REAL:
        flashinfer.decode.fast_decode_plan(wrapper, *arrays, *second.sizes, **told)
        check(wrapper, second)
    else:
        with pytest.raises(RuntimeError, match="the last plan chose its kernel for None"):
            flashinfer.decode.fast_decode_plan(wrapper, *arrays, *second.sizes, **told)
