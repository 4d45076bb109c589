"""Values of cases on a page: how the display form of `judge.core.values` is written, and an answer beside
what came, with the elements that differ marked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from flask import Flask
from markupsafe import Markup

from judge.core.values import RESERVED
from judge.core.verdict import Json
from judge.core.wording import say_status
from judge.packages import show_value
from web.i18n import language
from web.tensors import Largest, Piece, allowed_difference, largest_difference, tensor_of, written_tensor


@dataclass(frozen=True)
class FieldRow:
    """One field of an answer beside what came. `got` is None where nothing came; `largest` is the largest difference
    between two tensors of floats that are not the same."""

    name: str
    expected: list[Piece]
    got: list[Piece] | None
    same: bool
    largest: Largest | None = None


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


def side_by_side(
    expected: Json,
    got: Json,
    wrong: Collection[str] | None = None,
    tolerance: Mapping[str, float] = MappingProxyType({}),
) -> list[FieldRow]:
    """Field by field: what was expected and what came. `got` None: nothing came at all. `wrong`: the fields in which the
    judge found something; None: whatever is not equal. `tolerance` is the problem's."""
    want, have = named(expected), named(got) if got is not None else {}
    rows = []
    for name in [*want, *(k for k in have if k not in want)]:
        left, right = want.get(name, _ABSENT), have.get(name, _ABSENT)
        known = wrong is not None and left is not _ABSENT and right is not _ABSENT
        same = name not in (wrong or ()) if known else left == right
        if got is None or same:
            rows.append(FieldRow(name, _plain(left), None if got is None else _plain(right), same))
            continue
        rows.append(_differing(name, left, right, tolerance))
    return rows


_ABSENT = object()


def _plain(value: Any) -> list[Piece]:
    tensor = tensor_of(value)
    return written_tensor(tensor, None, 0.0, written) if tensor else [Piece(written(value))]


def _differing(name: str, left: Any, right: Any, tolerance: Mapping[str, float]) -> FieldRow:
    want, have = tensor_of(left), tensor_of(right)
    if want is None or have is None:
        return FieldRow(name, _whole(left, right), _whole(right, left), same=False)
    allowed = allowed_difference(want, tolerance)
    shown = written_tensor(have, want, allowed, written)
    if not any(piece.differs for piece in shown):  # what is wrong is less than that: a sign of zero, say
        allowed = 0.0
        shown = written_tensor(have, want, allowed, written)
    largest = largest_difference(have, want) if "float" in want.dtype else None
    return FieldRow(name, written_tensor(want, have, allowed, written), shown, same=False, largest=largest)


def _whole(value: Any, other: Any) -> list[Piece]:
    """A value that is compared as one thing; a tensor beside what is none is marked as a whole."""
    if value is _ABSENT:
        return [Piece("—", differs=True)]
    return [Piece(written(value), value != other)]
