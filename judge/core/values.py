"""The values that cases are made of, and their form for people.

A value is an int (64 bits), float, bool, string, None, list, tuple, dict or torch tensor. In the display form (public
cases, verdicts, pages) a tensor is `{"tensor": {"dtype": "int32", "shape": [3], "data": [0, 5, 11]}}`, a tuple is a
list, a float that JSON lacks is `{"float": "nan"}`, and a dict whose keys are not plain strings is
`{"dict": [[key, value], ...]}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# dtype names that may cross the sandbox border, with the bytes an element takes.
DTYPES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
MOST_SHOWN = 20_000  # elements of a tensor, or characters, that are still shown
MOST_PARTS = 200  # of an output
WORD = 40  # characters of a text that is not shown whole
RESERVED = frozenset({"tensor", "dict", "float"})


class ValueFormError(ValueError):
    """A value outside this model; `field` says where, `type_name` what was found there."""

    def __init__(self, field: str, type_name: str) -> None:
        self.field, self.type_name = field, type_name
        super().__init__(f"{field or 'value'}: {type_name} is not a value that cases are made of")


def dtype_name(tensor: Any) -> str:
    """`int32` for torch.int32."""
    return str(tensor.dtype).removeprefix("torch.")


def printable(text: str) -> str:
    """Text for a terminal or a page: control, format (bidi) and surrogate characters become a replacement character."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    )


def float_text(value: float) -> str:
    """A float for people: six digits, and never looking like an int."""
    text = f"{value:.6g}"
    return text if any(c in text for c in ".einf") else f"{text}.0"


def to_display(value: Any, field: str = "") -> Any:
    """The display form of a value; of a tensor too large to be read, a word about it. Raises ValueFormError."""
    import torch

    if isinstance(value, torch.Tensor):
        if math.prod(max(1, n) for n in value.shape) > MOST_SHOWN:
            return f"{dtype_name(value)} {list(value.shape)} …"
        data = value.detach().to(torch.float64) if value.is_floating_point() else value.detach()
        return {
            "tensor": {
                "dtype": dtype_name(value),
                "shape": list(value.shape),
                "data": _display_floats(data.tolist()),
            }
        }
    if isinstance(value, str):
        return printable(value[:MOST_SHOWN])
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _display_floats(value)
    if isinstance(value, list | tuple):
        return [to_display(v, f"{field}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, dict):
        if all(isinstance(k, str) for k in value) and not RESERVED & value.keys():
            return {printable(k): to_display(v, f"{field}.{k}") for k, v in value.items()}
        return {"dict": [[to_display(k, field), to_display(v, f"{field}[{k!r}]")] for k, v in value.items()]}
    raise ValueFormError(field, type(value).__name__)


def display_outputs(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The display form of what a submission gave. It chooses how many parts that has and what they are called: beyond
    MOST_SHOWN in all, parts are described in a word, and the last of very many are left out."""
    left = MOST_SHOWN
    shown: dict[str, Any] = {}
    for name, value in outputs.items():
        left -= reading_length(value) + len(name)
        if len(shown) == MOST_PARTS:
            break
        shown[printable(name)] = to_display(value) if left >= 0 else _in_a_word(value)
    return shown


def reading_length(value: Any) -> int:
    """`size_of`, where a text counts by its length and a dict by its keys too."""
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, dict):
        return 1 + sum(reading_length(k) + reading_length(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return 1 + sum(reading_length(v) for v in value)
    return size_of(value)


def _in_a_word(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value[:WORD]) + " …"
    if isinstance(value, list | tuple | dict):
        return f"{type(value).__name__} [{len(value)}] …"
    if hasattr(value, "numel"):
        return f"{dtype_name(value)} {list(value.shape)} …"
    return to_display(value)


def _display_floats(data: Any) -> Any:
    if isinstance(data, list):
        return [_display_floats(x) for x in data]
    if isinstance(data, float) and not math.isfinite(data):
        return {"float": str(data)}
    return data


def from_display(data: Any) -> Any:
    """The value of a display form; lists stay lists."""
    if isinstance(data, list):
        return [from_display(x) for x in data]
    if isinstance(data, dict):
        if data.keys() == {"tensor"}:
            import torch

            spec = data["tensor"]
            flat = from_display(spec["data"])
            return torch.tensor(flat, dtype=getattr(torch, spec["dtype"])).reshape(spec["shape"])
        if data.keys() == {"float"}:
            return float(data["float"])
        if data.keys() == {"dict"}:
            return {from_display(k): from_display(v) for k, v in data["dict"]}
        return {k: from_display(v) for k, v in data.items()}
    return data


def size_of(value: Any) -> int:
    """How much there is to read in a value: elements and leaves, counted. Orders counterexamples by size."""
    if isinstance(value, dict):
        return 1 + sum(size_of(v) for v in value.values())
    if isinstance(value, list | tuple):
        return 1 + sum(size_of(v) for v in value)
    if hasattr(value, "numel"):
        return 1 + int(value.numel())
    return 1
