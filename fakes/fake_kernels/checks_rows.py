"""What can be wrong with the tensors of a row-by-row operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch

from fake_kernels import mistakes_rows as m
from fake_kernels.checks_values import check_apart, check_numbers, check_room
from fake_kernels.findings import Finding, act, require_context, settle
from fake_kernels.outcomes import UNMEASURED, Outcome


def require_rows(
    **given: tuple[torch.Tensor, Sequence[int], torch.dtype],
) -> None:
    """Refuse tensors of another shape or type than given as `name=(tensor, shape, dtype)`.

    What the real kernels do with them was not measured, so both modes refuse.
    """

    def findings() -> Iterator[Finding]:
        for name, (tensor, shape, dtype) in given.items():
            if list(tensor.shape) != list(shape):
                yield Finding(m.SHAPES_DIFFER, name, {"got": list(tensor.shape), "expected": list(shape)})
            if tensor.dtype != dtype:
                yield Finding(m.DTYPES_DIFFER, name, {"got": str(tensor.dtype), "expected": str(dtype)})

    require_context()
    settle(findings(), "rows", during="run")


def acted(found: Iterable[Finding]) -> Outcome | None:
    """`settle` for these operators, and the failure of a kernel that was launched. Returns what is wrong with the
    numbers that it leaves, None if nothing is."""
    fault = settle(found, "rows", during="run")
    act(fault)
    return fault


def taken_bits(**given: tuple[torch.Tensor, torch.Tensor]) -> Iterator[Finding]:
    """Whether tensors of a norm have the type of its input, each `name=(tensor, input)`. Only input's is looked at, and
    no kernel is built for float32."""
    for name, (tensor, input) in given.items():
        if tensor.dtype != input.dtype:
            wide = tensor.element_size() >= input.element_size()
            outcome = None if input.element_size() == 2 and wide else UNMEASURED
            params = {"got": str(tensor.dtype), "expected": str(input.dtype)}
            yield Finding(m.WEIGHT_BITS, name, params, outcome)


def same_widths(input: torch.Tensor, **given: torch.Tensor) -> Iterator[Finding]:
    """Whether weight is [hidden] and residual [rows, hidden] for this input; in the library's words where it was
    measured to have some (norms of [rows, hidden])."""
    for name, tensor in given.items():
        expected = list(input.shape[-1:] if name == "weight" else input.shape)
        if list(tensor.shape) == expected:
            continue
        params: dict[str, object] = {"got": list(tensor.shape), "expected": expected, "message": ""}
        outcome = None if input.ndim == 2 else UNMEASURED
        if name == "weight":
            params["message"] = f"input.size(1) == weight.size(0) ({expected[0]} vs. {tensor.shape[0]})"
        elif tensor.shape[0] != expected[0]:
            params["message"] = f"residual.size(0) == batch_size ({tensor.shape[0]} vs. {expected[0]})"
        else:
            outcome = UNMEASURED
        yield Finding(m.WIDTHS_DIFFER, name, params, outcome)


FLOATS = (torch.float16, torch.bfloat16, torch.float32)
"""Half types, for which the kernels are built, and float32, which the fakes take besides."""


def tensor_of(
    name: str, given: object, *dimensions: int, checked: bool = False, floats: bool = False
) -> Iterator[Finding]:
    """Whether this is a tensor with one of these numbers of dimensions (none: any but 0), and with `floats` of one of
    `FLOATS`. checked: the library looks at the number itself. The other checks of an operator rely on it."""
    if not isinstance(given, torch.Tensor):
        yield Finding(m.NOT_A_TENSOR, name, {"type": type(given).__name__})
        return
    right = given.ndim in dimensions if dimensions else given.ndim > 0
    if not right:
        expected = "/".join(map(str, dimensions)) or "at least 1"
        params = {"got": given.ndim, "shape": list(given.shape), "expected": expected}
        yield Finding(m.DIMENSIONS_CHECKED if checked else m.DIMENSIONS, name, params)
    if floats and given.dtype not in FLOATS:
        yield Finding(m.NOT_FLOATS, name, {"dtype": str(given.dtype)})
    if given.is_complex():
        yield Finding(m.COMPLEX, name)


def require_tensors(
    *, checked: bool = False, floats: bool = True, **given: tuple[object, tuple[int, ...]]
) -> None:
    """Refuse what is no tensor, or has other dimensions, given as `name=(tensor, dimensions)`, or is of a type that
    no kernel is built for; and every call once the context is lost."""
    require_context()
    found = (
        one
        for name, (tensor, dimensions) in given.items()
        for one in tensor_of(name, tensor, *dimensions, checked=checked, floats=floats)
    )
    settle(found, "rows", during="run")


def require_last_dim(**given: torch.Tensor) -> None:
    """Refuse tensors whose rows are not dense."""
    found = (one for name, tensor in given.items() for one in last_dim(name, tensor))
    settle(found, "rows", during="run")


def last_dim(name: str, tensor: torch.Tensor, real_name: str | None = None) -> Iterator[Finding]:
    """Whether the numbers of a row lie side by side. real_name: the library's own for this tensor."""
    if tensor.ndim and tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
        params = {"stride": list(tensor.stride()), "last": tensor.stride(-1), "real_name": real_name or name}
        yield Finding(m.LAST_DIM_STRIDED, name, params)


def require_dense(name: str, tensor: torch.Tensor, outcome: Outcome | None = None) -> None:
    """Refuse a tensor that is not contiguous, for kernels that believe it is. outcome: where it isn't that measured."""
    if not tensor.is_contiguous():
        acted([Finding(m.STRIDES_IGNORED, name, {"stride": list(tensor.stride())}, outcome)])


def require_contiguous(**given: torch.Tensor) -> None:
    """Refuse tensors that are not contiguous."""
    settle(
        (
            Finding(m.NOT_CONTIGUOUS, name, {"stride": list(tensor.stride())})
            for name, tensor in given.items()
            if not tensor.is_contiguous()
        ),
        "rows",
        during="run",
    )


def require_numbers(**given: object) -> None:
    """Refuse arguments, under their names in `checks_values`, that should be numbers or flags and are not."""
    require_context()
    settle(check_numbers(given, required=("rope_scale", "rope_theta")), "rows", during="run")


def require_room(**given: torch.Tensor) -> None:
    """Refuse tensors that are written in place where entries share memory."""
    acted(check_room(**given))


def require_apart(outcome: Outcome | None = None, **given: torch.Tensor) -> None:
    """Refuse tensors that are written in place and lie in the same memory. outcome: where it isn't that measured."""
    acted(replace(found, outcome=outcome) for found in check_apart(**given))
