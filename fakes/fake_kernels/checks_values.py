"""What can be wrong with single values of a call: numbers by their names, tensors that are none, memory that overlaps."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from itertools import combinations
from numbers import Integral, Real

import numpy as np
import torch

from fake_kernels import mistakes_values as m
from fake_kernels.findings import Finding
from fake_kernels.outcomes import UNMEASURED

_WHOLE = (
    "num_qo_heads",
    "num_kv_heads",
    "head_dim",
    "head_dim_qk",
    "head_dim_vo",
    "head_size",
    "page_size",
    "rotary_dim",
    "window_left",
    "fixed_split_size",
    "max_seqlen_q",
    "max_seqlen_k",
    "old_context_len",
    "num_experts",
    "block_size",
    "nnz",
    "num_levels",
    "num_splits",
    "M",
    "N",
    "R",
    "C",
)
_REAL = (
    "sm_scale",
    "softmax_scale",
    "logits_soft_cap",
    "softcap",
    "moe_softcapping",
    "eps",
    "rope_scale",
    "rope_theta",
    "low_freq_factor",
    "high_freq_factor",
)
_FLAGS = (
    "causal",
    "non_blocking",
    "disable_split_kv",
    "use_fp16_qk_reduction",
    "use_cuda_graph",
    "use_tensor_cores",
    "return_lse",
    "return_softmax_lse",
    "return_valid",
    "check_nan",
    "interleave",
    "is_neox",
    "is_causal",
    "renormalize",
    "pad_sorted_token_ids",
    "ignore_invalid_expert",
)
_POSITIVE = ("head_dim", "head_dim_qk", "head_dim_vo", "head_size", "rope_scale", "rope_theta", "R")
_OPTIONAL = (
    "head_dim_vo",
    "rotary_dim",
    "fixed_split_size",
    "max_seqlen_q",
    "max_seqlen_k",
    "old_context_len",
    "sm_scale",
    "softmax_scale",
    "logits_soft_cap",
    "rope_scale",
    "rope_theta",
)
"""Arguments that may be None."""


def check_numbers(given: Mapping[str, object], required: Container[str] = ()) -> Iterator[Finding]:
    """Whether the arguments that are numbers or flags are such, numbers finite. given: arguments of a call by name; what
    is neither is passed over. required: names that may be None elsewhere but not here. The other checks of a call rely
    on it."""
    for name, value in given.items():
        if name in _FLAGS:
            if value is not None and not isinstance(value, bool | int | np.bool_):
                yield Finding(m.NOT_A_FLAG, name, _shown(value))
            continue
        if name not in _WHOLE and name not in _REAL:
            continue
        if value is None and name in _OPTIONAL and name not in required:
            continue
        kind, mistake = (Integral, m.NOT_WHOLE) if name in _WHOLE else (Real, m.NOT_REAL)
        if isinstance(
            value, bool | np.bool_
        ):  # the binding takes 1 for it; here it is an argument that slipped
            yield Finding(mistake, name, _shown(value), UNMEASURED)
        elif not isinstance(value, kind):
            yield Finding(mistake, name, _shown(value))
        else:
            yield from _check_range(name, float(value))


def _shown(value: object) -> dict[str, str]:
    shown = f"tensor{tuple(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)
    return {"value": shown, "type": type(value).__name__}


def _check_range(name: str, number: float) -> Iterator[Finding]:
    if not math.isfinite(number):
        yield Finding(m.OUT_OF_RANGE, name, {"value": number, "range": "finite", "range_zh": "是有限的数"})
    elif name in _POSITIVE and number <= 0:
        yield Finding(m.OUT_OF_RANGE, name, {"value": number, "range": "above 0", "range_zh": "大于 0"})


def check_tensors(attribute: str, **given: object) -> Iterator[Finding]:
    """Whether these are tensors. attribute: the first one of a tensor's that the library's Python asks for."""
    for name, tensor in given.items():
        if not isinstance(tensor, torch.Tensor):
            yield Finding(m.NOT_A_TENSOR, name, {"type": type(tensor).__name__, "attribute": attribute})


def check_written(name: str, tensor: torch.Tensor) -> Iterator[Finding]:
    """Whether a kernel that doesn't look at strides can write its result there."""
    if not tensor.is_contiguous():
        yield Finding(m.OUT_STRIDES, name, {"stride": list(tensor.stride())})


def check_room(**given: torch.Tensor) -> Iterator[Finding]:
    """Whether every entry of these tensors, which a kernel writes by their strides, has memory of its own."""
    for name, tensor in given.items():
        if _overlaps_itself(tensor):
            yield Finding(m.OVERLAPS_ITSELF, name, {"stride": list(tensor.stride())})


def _overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether some step of the tensor is shorter than what the smaller steps cover, as after expand()."""
    if tensor.is_contiguous():
        return False
    covered = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and step < covered:
            return True
        covered += (size - 1) * step
    return False


def check_buffers(given: Mapping[str, tuple[torch.Tensor, torch.dtype]]) -> Iterator[Finding]:
    """Whether buffers for CUDA graphs, by name with the type that kernels read, are vectors of it, each in memory of
    its own."""
    for name, (buffer, dtype) in given.items():
        if buffer.dtype != dtype or buffer.ndim != 1 or not buffer.is_contiguous():
            params = {
                "dtype": str(buffer.dtype).removeprefix("torch."),
                "shape": list(buffer.shape),
                "stride": list(buffer.stride()),
                "expected": str(dtype).removeprefix("torch."),
                "tensor": name.removesuffix("_buffer"),
            }
            is_vector = buffer.ndim == 1 and buffer.is_contiguous()
            measured = is_vector and (buffer.dtype, dtype) == (torch.int64, torch.int32)
            yield Finding(m.GRAPH_BUFFER_FORM, name, params, None if measured else UNMEASURED)
    yield from check_overlap({name: buffer for name, (buffer, _) in given.items()})


def check_overlap(buffers: Mapping[str, torch.Tensor]) -> Iterator[Finding]:
    """Whether each of these buffers, by name, has memory of its own."""
    for (name, one), (other, two) in combinations(buffers.items(), 2):
        if overlap(one, two):
            yield Finding(m.BUFFERS_OVERLAP, other, {"other": name})


def check_apart(**given: torch.Tensor) -> Iterator[Finding]:
    """Whether tensors that a kernel writes are different ones."""
    for (name, one), (other, two) in combinations(given.items(), 2):
        if overlap(one, two):
            yield Finding(m.SAME_MEMORY, other, {"other": name})


def overlap(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether two tensors have an element in common; False where their strides make that hard to say.

    Columns of one wider tensor (q and k of a joined projection) lie in one memory and have nothing in common.
    """
    if not one.numel() or not two.numel() or one.device.type == "meta":
        return False
    if one.untyped_storage().data_ptr() != two.untyped_storage().data_ptr():
        return False
    a, b = one.data_ptr(), two.data_ptr()
    if a + _span(one) <= b or b + _span(two) <= a:
        return False
    if a == b or (one.is_contiguous() and two.is_contiguous()):
        return True
    if (
        not one.ndim
        or not two.ndim
        or one.stride(0) != two.stride(0)
        or one.element_size() != two.element_size()
    ):
        return False
    row = one.stride(0) * one.element_size()
    if row <= 0:
        return False
    first, second = sorted(((a % row, _span(one[0])), (b % row, _span(two[0]))))
    return first[0] + first[1] > second[0] or second[0] + second[1] > row + first[0]


def _span(tensor: torch.Tensor) -> int:
    """Bytes from the first element to behind the last one."""
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (steps + 1) * tensor.element_size()
