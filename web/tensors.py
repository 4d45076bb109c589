"""A tensor of an answer beside the one that came: written out, with the elements marked in which they differ by more than the
problem allows, and the largest difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judge.core.compare import DEFAULT_TOLERANCE
from judge.core.verdict import Json

MAX_ELEMENTS = 400
ROW = ",\n     "  # between the rows of a matrix


@dataclass(frozen=True)
class Piece:
    """A stretch of a written value; `differs` marks it."""

    text: str
    differs: bool = False


@dataclass(frozen=True)
class Tensor:
    """The display form of a tensor; `data` is nested as its axes are."""

    dtype: str
    shape: tuple[int, ...]
    data: Any


@dataclass(frozen=True)
class Largest:
    """The largest difference between two tensors of numbers, and where it is."""

    size: float
    place: tuple[int, ...]


def tensor_of(value: Json) -> Tensor | None:
    """The tensor that a display form stands for, if it is one with an axis."""
    if not isinstance(value, Mapping) or value.keys() != {"tensor"} or not value["tensor"]["shape"]:
        return None
    spec = value["tensor"]
    return Tensor(spec["dtype"], tuple(spec["shape"]), spec["data"])


def allowed_difference(want: Tensor, tolerance: Mapping[str, float]) -> float:
    """By how much an element may differ: the judge's rule, relative to the largest of the answer."""
    allowed = {**DEFAULT_TOLERANCE, **tolerance}.get(want.dtype, 0.0)
    sizes = [abs(x) for _, x in elements(want.data) if _is_number(x)]
    return float(allowed * max([1.0, *sizes]))


def elements(data: Any, place: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The elements of nested data with their indices."""
    if not isinstance(data, list):
        yield place, data
        return
    for i, part in enumerate(data):
        yield from elements(part, (*place, i))


def largest_difference(mine: Tensor, other: Tensor) -> Largest | None:
    """Where the two are furthest apart; None if their shapes differ, or nothing in them can be subtracted."""
    if mine.shape != other.shape:
        return None
    pairs = zip(elements(mine.data), elements(other.data), strict=True)
    apart = [(abs(a - b), place) for (place, a), (_, b) in pairs if _is_number(a) and _is_number(b)]
    size, place = max(apart, key=lambda pair: pair[0], default=(0.0, ()))
    return Largest(size, place) if size else None


def written_tensor(
    mine: Tensor, other: Tensor | None, allowed: float, written: Callable[[Json], str]
) -> list[Piece]:
    """`mine` in pieces, marked where it is not what `other` has in that place (None: there is nothing to compare with)."""
    dtype_differs = other is not None and mine.dtype != other.dtype
    shape_differs = other is not None and mine.shape != other.shape
    head = [Piece(mine.dtype, dtype_differs), Piece(" "), Piece(_shape(mine.shape), shape_differs)]
    axes = len(mine.shape)
    if other is not None and len(other.shape) != axes:
        other = None  # no element of one is in the place of an element of the other
    twin = dict(elements(other.data)) if other is not None else {}
    left = MAX_ELEMENTS
    pieces = [*head, Piece("\n    [" if axes > 1 else " [")]

    def write(data: list[Any], place: tuple[int, ...]) -> None:
        nonlocal left
        for i, part in enumerate(data):
            if left <= 0:
                pieces.append(Piece(", …"))
                return
            if i:
                pieces.append(Piece(ROW if axes == 2 and not place else ", "))
            here = (*place, i)
            if isinstance(part, list):
                pieces.append(Piece("["))
                write(part, here)
                pieces.append(Piece("]"))
                continue
            left -= 1
            differs = other is not None and (here not in twin or _differ(part, twin[here], allowed))
            pieces.append(Piece(written(part), differs))

    write(mine.data, ())
    return [*pieces, Piece("]")]


def _differ(a: Any, b: Any, allowed: float) -> bool:
    if _is_number(a) and _is_number(b):
        return bool(abs(a - b) > allowed)
    return bool(a != b)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + (",)" if len(shape) == 1 else ")")
