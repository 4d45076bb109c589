"""Whether an output is the expected one, and if not, in which way: exact about type, dtype and shape (nothing is
broadcast), exact for integers, within a tolerance relative to the size of the answer for floats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from judge.core.values import dtype_name, printable
from judge.core.verdict import Mismatch

DEFAULT_TOLERANCE = {"float64": 1e-7, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


class Comparer:
    """Compares outputs under one problem's tolerances.

    `tolerance` maps a dtype name to the largest |got - want| allowed, as a part of max(1, largest |want|).
    `nan_ok` names the fields in which NaN may equal NaN; elsewhere NaN equals nothing.
    `signed_zero` names the fields in which -0.0 and 0.0 differ.
    """

    def __init__(
        self,
        tolerance: Mapping[str, float] | None = None,
        nan_ok: Iterable[str] = (),
        signed_zero: Iterable[str] = (),
    ) -> None:
        self.tolerance = {**DEFAULT_TOLERANCE, **(tolerance or {})}
        self.nan_ok = frozenset(nan_ok)
        self.signed_zero = frozenset(signed_zero)

    def outputs(self, got: Mapping[str, Any], want: Mapping[str, Any]) -> list[Mismatch]:
        """All mismatches between two outputs, by field, in the order of `want`."""
        found: list[Mismatch] = []
        for name, expected in want.items():
            if name in got:
                self._value(got[name], expected, name, name, found)
            else:
                found.append(Mismatch("missing", name))
        _unexpected(got, want, "outputs", found)
        return found

    def field(self, name: str, got: Any, want: Any) -> list[Mismatch]:
        """All mismatches of one field of an output."""
        found: list[Mismatch] = []
        self._value(got, want, name, name, found)
        return found

    def _value(self, got: Any, want: Any, path: str, top: str, found: list[Mismatch]) -> None:
        import torch

        if isinstance(want, torch.Tensor):
            if isinstance(got, torch.Tensor):
                self._tensor(got, want, path, top, found)
            else:
                found.append(_type_mismatch(path, f"{dtype_name(want)} tensor", got))
        elif isinstance(want, list | tuple):
            if type(got) is not type(want):
                found.append(_type_mismatch(path, type(want).__name__, got))
            elif len(got) != len(want):
                found.append(Mismatch("length", path, {"expected": len(want), "got": len(got)}))
            else:
                for i, (g, w) in enumerate(zip(got, want, strict=True)):
                    self._value(g, w, f"{path}[{i}]", top, found)
        elif isinstance(want, dict):
            self._dict(got, want, path, top, found)
        else:
            self._scalar(got, want, path, top, found)

    def _dict(self, got: Any, want: dict[Any, Any], path: str, top: str, found: list[Mismatch]) -> None:
        if type(got) is not dict:
            found.append(_type_mismatch(path, "dict", got))
            return
        for key, expected in want.items():
            if key in got:
                self._value(got[key], expected, f"{path}[{key!r}]", top, found)
            else:
                found.append(Mismatch("missing", f"{path}[{key!r}]"))
        _unexpected(got, want, path, found)

    def _scalar(self, got: Any, want: Any, path: str, top: str, found: list[Mismatch]) -> None:
        if type(got) is not type(want):
            found.append(_type_mismatch(path, type(want).__name__, got))
        elif isinstance(want, float):
            if not self._floats_equal(got, want, top):
                found.append(Mismatch("value", path, {"expected": _show(want), "got": _show(got)}))
        elif got != want:
            found.append(Mismatch("value", path, {"expected": _show(want), "got": _show(got)}))

    def _floats_equal(self, got: float, want: float, top: str) -> bool:
        if math.isnan(want) or math.isnan(got):
            return top in self.nan_ok and math.isnan(want) and math.isnan(got)
        if top in self.signed_zero and got == want == 0.0:
            return math.copysign(1, got) == math.copysign(1, want)
        if math.isinf(want) or math.isinf(got):
            return got == want
        return abs(got - want) <= self.tolerance["float64"] * max(1.0, abs(want))

    def _tensor(self, got: Any, want: Any, path: str, top: str, found: list[Mismatch]) -> None:
        import torch

        dtype_right, shape_right = got.dtype == want.dtype, got.shape == want.shape
        # torch.equal finds no NaN equal and takes -0.0 for 0.0: it can only say "the same" of what is.
        if dtype_right and shape_right and top not in self.signed_zero and torch.equal(got, want):
            return
        wrong = self.wrong_elements(got, want, top) if shape_right else None
        if not dtype_right:
            found.append(
                Mismatch(
                    "dtype",
                    path,
                    {
                        "expected": dtype_name(want),
                        "got": dtype_name(got),
                        "shape": list(got.shape),
                        "rest_right": wrong is not None and not bool(wrong.any()),
                    },
                )
            )
        if wrong is None:
            found.append(Mismatch("shape", path, {"expected": list(want.shape), "got": list(got.shape)}))
        elif bool(wrong.any()):
            at = wrong.nonzero()[0].tolist()
            found.append(
                Mismatch(
                    "value",
                    path + (f"[{', '.join(map(str, at))}]" if at else ""),
                    {
                        "expected": _show(want[tuple(at)].item()),
                        "got": _show(got[tuple(at)].item()),
                        "wrong": int(wrong.sum()),
                        "of": want.numel(),
                        "shape": list(want.shape),
                        "dtype": dtype_name(want) if dtype_right else None,
                    },
                )
            )

    def wrong_elements(self, got: Any, want: Any, top: str) -> Any:
        """A bool tensor, True where `got` is not `want`. Both have one shape; dtypes may differ."""
        import torch

        if not (want.is_floating_point() or got.is_floating_point()):
            return got.to(torch.int64) != want.to(torch.int64)
        a, b = got.to(torch.float64), want.to(torch.float64)
        finite = b.isfinite()
        scale = max(1.0, float(b[finite].abs().max())) if bool(finite.any()) else 1.0
        allowed = self.tolerance.get(dtype_name(want), 0.0) * scale
        # inf - inf is NaN: infinities are compared by equality, and so is every NaN (which equals nothing).
        right = (a == b) | ((a - b).abs() <= allowed)
        if top in self.nan_ok:
            right |= a.isnan() & b.isnan()
        if top in self.signed_zero:
            right &= ~((a == 0) & (b == 0) & (a.signbit() != b.signbit()))
        return ~right


def _unexpected(got: Mapping[Any, Any], want: Mapping[Any, Any], path: str, found: list[Mismatch]) -> None:
    """One mismatch for all keys that the answer lacks: their names are the submission's own words."""
    names = [printable(str(k))[:40] for k in got if k not in want]
    if names:
        found.append(
            Mismatch("unexpected", path, {"names": ", ".join(names[:5]) + (" …" if len(names) > 5 else "")})
        )


def _type_mismatch(path: str, expected: str, got: Any) -> Mismatch:
    import torch

    name = f"{dtype_name(got)} tensor" if isinstance(got, torch.Tensor) else type(got).__name__
    return Mismatch("type", path, {"expected": expected, "got": name})


def _show(value: Any) -> Any:
    """A scalar as JSON: what JSON lacks becomes text, long text is cut."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str) and len(value) > 200:
        return value[:200] + "…"
    return value
