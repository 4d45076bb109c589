"""What can be wrong with the tensors of a row-by-row operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from fake_kernels import mistakes_rows as m
from fake_kernels.checks_values import check_apart, check_numbers
from fake_kernels.findings import Finding, require_context, settle


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


def last_dim(name: str, tensor: torch.Tensor) -> Iterator[Finding]:
    """Whether the numbers of a row lie side by side."""
    if tensor.ndim and tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
        yield Finding(m.LAST_DIM_STRIDED, name, {"stride": list(tensor.stride())})


def require_dense(**given: torch.Tensor) -> None:
    """Refuse tensors that are not contiguous, for kernels that believe they are."""
    settle(
        (
            Finding(m.STRIDES_IGNORED, name, {"stride": list(tensor.stride())})
            for name, tensor in given.items()
            if not tensor.is_contiguous()
        ),
        "rows",
        during="run",
    )


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


def require_apart(**given: torch.Tensor) -> None:
    """Refuse tensors that are written in place and lie in the same memory."""
    settle(check_apart(**given), "rows", during="run")
