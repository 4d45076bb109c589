"""What can be wrong with the tensors of a row-by-row operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from fake_kernels import mistakes_rows as m
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


def require_dimensions(*allowed: tuple[str, ...], **given: torch.Tensor) -> None:
    """Refuse tensors with another number of dimensions than one of `allowed`, each its dimensions by name."""
    expected = " or ".join(f"[{', '.join(names)}]" for names in allowed)
    settle(
        (
            Finding(
                m.SHAPES_DIFFER,
                name,
                {"got": list(tensor.shape), "expected": expected},
            )
            for name, tensor in given.items()
            if tensor.ndim not in map(len, allowed)
        ),
        "rows",
        during="run",
    )


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
