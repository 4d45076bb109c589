"""Values of cases on a page: how the display form of `judge.core.values` is written, and an answer beside
what came, with the elements that differ marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from flask import Flask
from markupsafe import Markup

from judge.core.values import RESERVED
from judge.core.verdict import Json
from judge.core.wording import say_status
from judge.packages import show_value
from web.i18n import language

MAX_ELEMENTS = 400


@dataclass(frozen=True)
class Piece:
    """A stretch of a written value; `differs` marks it."""

    text: str
    differs: bool = False


@dataclass(frozen=True)
class FieldRow:
    """One field of an answer beside what came. `got` is None where nothing came."""

    name: str
    expected: list[Piece]
    got: list[Piece] | None
    same: bool


def when(seconds: float) -> Markup:
    """A time (seconds since 1970) as an element; a script turns it into the reader's own zone."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(
        moment.isoformat(timespec="seconds"), moment.strftime("%Y-%m-%d %H:%M")
    )


def init_app(app: Flask) -> None:
    app.jinja_env.filters.update(when=when, written=written, named=named)
    app.jinja_env.globals.update(side_by_side=side_by_side, status_text=lambda s: say_status(s, language()))


def named(value: Json) -> dict[str, Json]:
    """The named parts of inputs or outputs; a value without names is one part without a name."""
    if isinstance(value, Mapping) and not (len(value) == 1 and value.keys() <= RESERVED):
        return dict(value)
    return {"": value}


def written(value: Json) -> str:
    """A value as one would write it."""
    return show_value(value)


def side_by_side(expected: Json, got: Json) -> list[FieldRow]:
    """Field by field: what was expected and what came. `got` None: nothing came at all."""
    want, have = named(expected), named(got) if got is not None else {}
    rows = []
    for name in [*want, *(k for k in have if k not in want)]:
        left, right = want.get(name, _ABSENT), have.get(name, _ABSENT)
        same = left == right
        shown = None if got is None else _pieces(right, left)
        rows.append(FieldRow(name, _pieces(left, left if got is None else right), shown, same))
    return rows


_ABSENT = object()


def _pieces(value: Any, other: Any) -> list[Piece]:
    """`value` written out, marked where it is not what `other` has in the same place."""
    if value is _ABSENT:
        return [Piece("—", other is not _ABSENT)]
    spec, twin = _vector(value), _vector(other)
    if spec is None:
        return [Piece(written(value), value != other)]
    dtype, shape, data = spec
    other_dtype, other_shape, other_data = twin or (None, None, [])
    pieces = [
        Piece(dtype, dtype != other_dtype),
        Piece(" "),
        Piece(f"({_shape(shape)})", shape != other_shape),
    ]
    pieces.append(Piece(" ["))
    for i, (mine, theirs) in enumerate(zip_longest(data[:MAX_ELEMENTS], other_data, fillvalue=_ABSENT)):
        if mine is _ABSENT:
            break
        pieces += [Piece(", ")] if i else []
        pieces.append(Piece(written(mine), mine != theirs))
    pieces.append(Piece(", …]" if len(data) > MAX_ELEMENTS else "]"))
    return pieces


def _vector(value: Any) -> tuple[str, list[int], list[Any]] | None:
    """dtype, shape and elements of a tensor with one axis."""
    if not isinstance(value, Mapping) or value.keys() != {"tensor"}:
        return None
    spec = value["tensor"]
    return (spec["dtype"], spec["shape"], spec["data"]) if len(spec["shape"]) == 1 else None


def _shape(shape: list[int]) -> str:
    return ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
