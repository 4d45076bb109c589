"""What crosses the border of the sandbox: frames.

A frame is a 4-byte length (little endian), a 4-byte header length, a JSON header and the raw bytes of its tensors, one
after the other in the order in which the header names them. The header is `{"kind": ..., "body": ...}`. In a body a
JSON object always has exactly one key, which says what it is:

    {"t": ["int32", [3]]}   a tensor, its bytes follow        {"d": {"name": ...}}     a dict with string keys
    {"u": [...]}            a tuple                           {"m": [[key, value]]}    any other dict
    {"f": "nan"}            a float that JSON lacks

Everything is checked before anything is allocated: lengths, depth, the number of leaves, numbers, strings, dtypes,
shapes against the bytes that are there. No pickle, no torch.load: a frame from a submission can be wrong, never
dangerous. Frames that break the grammar raise FrameError.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge.core.values import DTYPES, ValueFormError, dtype_name

MAX_FRAME = 64 << 20
MAX_HEADER = 1 << 20
MAX_DEPTH = 8
MAX_LEAVES = 20_000
MAX_STRING = 64 * 1024
MAX_DIMS = 8
INT_BOUND = 1 << 63
LENGTH = struct.Struct("<I")


class FrameError(ValueError):
    """The bytes are no frame of this grammar."""


@dataclass(frozen=True)
class Frame:
    """A decoded frame: `kind` is a short word, `body` a value."""

    kind: str
    body: Any


def encode(kind: str, body: Any) -> bytes:
    """A complete frame, its length included. Raises ValueFormError for a body outside the value model, FrameError for
    one that is too large."""
    blobs: list[bytes] = []
    tree = _pack(body, "", 0, blobs)
    header = json.dumps({"kind": kind, "body": tree}, separators=(",", ":"), allow_nan=False).encode()
    if len(header) > MAX_HEADER:
        raise FrameError(f"header of {len(header)} bytes, at most {MAX_HEADER}")
    rest = b"".join((LENGTH.pack(len(header)), header, *blobs))
    if len(rest) > MAX_FRAME:
        raise FrameError(f"frame of {len(rest)} bytes, at most {MAX_FRAME}")
    return LENGTH.pack(len(rest)) + rest


def _pack(value: Any, field: str, depth: int, blobs: list[bytes]) -> Any:
    if depth > MAX_DEPTH:
        raise ValueFormError(field, f"something nested deeper than {MAX_DEPTH}")
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        if len(value) > MAX_STRING:
            raise ValueFormError(field, f"a string of {len(value)} characters (at most {MAX_STRING})")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueFormError(field, "a string with half a surrogate pair") from None
        return value
    if kind is int:
        if not -INT_BOUND <= value < INT_BOUND:
            raise ValueFormError(field, "an int of more than 64 bits")
        return value
    if kind is float:
        return value if math.isfinite(value) else {"f": str(value)}
    if kind is list:
        return [_pack(v, f"{field}[{i}]", depth + 1, blobs) for i, v in enumerate(value)]
    if isinstance(value, tuple):
        return {"u": [_pack(v, f"{field}[{i}]", depth + 1, blobs) for i, v in enumerate(value)]}
    if kind is dict:
        if all(type(k) is str for k in value):
            return {"d": {k: _pack(v, f"{field}.{k}", depth + 1, blobs) for k, v in value.items()}}
        return {
            "m": [
                [_pack(k, field, depth + 1, blobs), _pack(v, f"{field}[{k!r}]", depth + 1, blobs)]
                for k, v in value.items()
            ]
        }
    return _pack_tensor(value, field, blobs)


def _pack_tensor(value: Any, field: str, blobs: list[bytes]) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        raise ValueFormError(field, type(value).__name__)
    name = dtype_name(value)
    if name not in DTYPES:
        raise ValueFormError(field, f"a tensor of {name}")
    flat = value.detach().cpu().contiguous().reshape(-1)
    if flat.numel() and flat.stride(0) != 1:  # one element counts as contiguous whatever its stride
        flat = flat.clone(memory_format=torch.contiguous_format)
    blobs.append(flat.view(torch.uint8).numpy().tobytes())
    return {"t": [name, list(value.shape)]}


def decode(data: bytes | bytearray | memoryview, *, max_bytes: int = MAX_FRAME) -> Frame:
    """The frame in `data`, which is what follows the length. Raises FrameError, whatever the bytes are."""
    if not 4 <= len(data) <= max_bytes:
        raise FrameError(f"a frame of {len(data)} bytes")
    view = memoryview(data)
    (size,) = LENGTH.unpack(view[:4])
    if size > MAX_HEADER or 4 + size > len(view):
        raise FrameError(f"a header of {size} bytes in a frame of {len(view)}")
    try:
        head = json.loads(
            bytes(view[4 : 4 + size]),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_bounded_int,
            parse_float=_finite_float,
        )
    except RecursionError:
        raise FrameError("header nested too deep") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FrameError(f"header is no JSON: {error}") from None
    if type(head) is not dict or head.keys() != {"kind", "body"}:
        raise FrameError("header needs exactly kind and body")
    kind = head["kind"]
    if type(kind) is not str or not 0 < len(kind) <= 32:
        raise FrameError("kind is no short word")
    reader = _Reader(view[4 + size :])
    body = reader.value(head["body"], 0)
    if reader.at != len(reader.rest):
        raise FrameError(f"{len(reader.rest) - reader.at} bytes that no tensor claims")
    return Frame(kind, body)


def _text(text: str, most: int) -> None:
    if len(text) > most:
        raise FrameError(f"a string of {len(text)} characters")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise FrameError("a string with half a surrogate pair")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise FrameError("a key twice in one object")
    return result


def _refuse_constant(name: str) -> Any:
    raise FrameError(f"{name} is no JSON number")


def _bounded_int(text: str) -> int:
    if len(text) > 20 or not -INT_BOUND <= int(text) < INT_BOUND:
        raise FrameError("an int of more than 64 bits")
    return int(text)


def _finite_float(text: str) -> float:
    value = float(text) if len(text) <= 40 else math.inf
    if not math.isfinite(value):
        raise FrameError("a number out of range")
    return value


class _Reader:
    """Turns a header's tree into values. Invariant: `at` bytes of `rest` have been claimed by tensors so far."""

    def __init__(self, rest: memoryview) -> None:
        self.rest = rest
        self.at = 0
        self.leaves = 0

    def value(self, node: Any, depth: int) -> Any:
        self.leaves += 1
        if depth > MAX_DEPTH:
            raise FrameError(f"nested deeper than {MAX_DEPTH}")
        if self.leaves > MAX_LEAVES:
            raise FrameError(f"more than {MAX_LEAVES} values")
        if isinstance(node, list):
            return [self.value(x, depth + 1) for x in node]
        if isinstance(node, dict):
            return self._tagged(node, depth)
        if isinstance(node, str):
            _text(node, MAX_STRING)
        return node

    def _tagged(self, node: Mapping[str, Any], depth: int) -> Any:
        if len(node) != 1:
            raise FrameError("an object with other than one key")
        ((tag, inner),) = node.items()
        if tag == "t":
            return self._tensor(inner)
        if tag == "f" and inner in ("nan", "inf", "-inf"):
            return float(inner)
        if tag == "u" and isinstance(inner, list):
            return tuple(self.value(x, depth + 1) for x in inner)
        if tag == "d" and isinstance(inner, dict):
            for key in inner:
                _text(key, 200)
            return {k: self.value(v, depth + 1) for k, v in inner.items()}
        if tag == "m" and isinstance(inner, list):
            return self._mapping(inner, depth)
        raise FrameError(f"unknown tag {tag[:20]!r}")

    def _mapping(self, inner: list[Any], depth: int) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for pair in inner:
            if not isinstance(pair, list) or len(pair) != 2:
                raise FrameError("a mapping needs pairs")
            key = self.value(pair[0], depth + 1)
            if type(key) not in (int, str, bool, float) and not (
                type(key) is tuple and all(type(k) in (int, str) for k in key)
            ):
                raise FrameError("a key that is neither a scalar nor a tuple of them")
            if key in result:
                raise FrameError("a key twice in one mapping")
            result[key] = self.value(pair[1], depth + 1)
        return result

    def _tensor(self, spec: Any) -> Any:
        import torch

        if not (isinstance(spec, list) and len(spec) == 2 and isinstance(spec[1], list)):
            raise FrameError("a tensor needs dtype and shape")
        name, shape = spec
        if not isinstance(name, str) or name not in DTYPES:
            raise FrameError(f"unknown dtype {str(name)[:20]!r}")
        if len(shape) > MAX_DIMS or any(type(n) is not int or not 0 <= n <= MAX_FRAME for n in shape):
            raise FrameError("an absurd shape")
        if math.prod(max(1, n) for n in shape) > MAX_FRAME:  # an empty tensor must not hide a huge one
            raise FrameError("an absurd shape")
        size = DTYPES[name] * math.prod(shape)
        if size > len(self.rest) - self.at:
            raise FrameError(f"a tensor of {size} bytes where {len(self.rest) - self.at} are left")
        blob = bytearray(self.rest[self.at : self.at + size])
        self.at += size
        dtype = getattr(torch, name)
        if not size:
            return torch.empty(shape, dtype=dtype)
        if name == "bool" and blob.translate(None, b"\x00\x01"):
            raise FrameError("a bool that is neither 0 nor 1")
        return torch.frombuffer(blob, dtype=dtype).reshape(shape)
