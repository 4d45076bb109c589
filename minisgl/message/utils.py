"""From a message to a frame of bytes and back.

A message becomes plain data (dicts with a tag, lists, numbers, text and bytes), and that becomes msgpack. Only
types that the receiver lists are built, field by field, so bytes from a socket never decide what code runs:
pickle would let them. Tensors travel as dtype, shape and bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import msgpack
import torch

_TYPE = "__type__"
_TENSOR = "__tensor__"
_PLAIN = (bool, int, float, str, bytes, type(None))
# Room for a prompt of millions of tokens; what is larger is a mistake, and is stopped before it is sent.
MAX_FRAME_BYTES = 64 * 2**20
# Deeper than any message; from_plain walks a frame by recursion.
MAX_DEPTH = 64
_DTYPES = {str(dtype): dtype for dtype in (torch.int32, torch.int64, torch.float32)}


def to_plain(value: Any) -> Any:
    """A message, or anything inside of one, as plain data. Tuples become lists.

    TypeError for a type that messages do not carry.
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, torch.Tensor):
        if str(value.dtype) not in _DTYPES:
            raise TypeError(f"messages carry tensors of {', '.join(_DTYPES)}, not {value.dtype}")
        data = value.detach().cpu().contiguous().numpy().tobytes()
        return {_TENSOR: str(value.dtype), "shape": list(value.shape), "data": data}
    if is_dataclass(value) and not isinstance(value, type):
        told = {field.name: to_plain(getattr(value, field.name)) for field in fields(value) if field.init}
        return {_TYPE: type(value).__name__, **told}
    if isinstance(value, dict):
        if not all(isinstance(key, str) and not key.startswith("__") for key in value):
            raise TypeError("dicts in messages have text keys that do not begin with two underscores")
        return {key: to_plain(item) for key, item in value.items()}
    raise TypeError(f"messages do not carry {type(value).__name__}")


def from_plain(value: Any, types: Iterable[type]) -> Any:
    """The inverse of `to_plain`, building dataclasses of `types` only. Sequences come back as tuples inside
    dataclasses that are hashable, as lists otherwise.

    ValueError for a type that is not listed, a field that it does not have, or a broken tensor.
    """
    return _Reader({kind.__name__: kind for kind in types}).read(value)


class _Reader:
    def __init__(self, types: Mapping[str, type]) -> None:
        self._types = types

    def read(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.read(item) for item in value]
        if not isinstance(value, dict):
            return value
        if _TENSOR in value:
            return _read_tensor(value)
        if _TYPE in value:
            return self._read_message(value)
        return {key: self.read(item) for key, item in value.items()}

    def _read_message(self, value: Mapping[str, Any]) -> Any:
        name = value[_TYPE]
        kind = self._types.get(name) if isinstance(name, str) else None
        if kind is None:
            known = ", ".join(sorted(self._types))
            raise ValueError(f"a message of type {value[_TYPE]!r} is not expected here; known are {known}")
        given = {name: self.read(item) for name, item in value.items() if name != _TYPE}
        if kind.__hash__ is not None and kind.__dataclass_params__.eq:  # type: ignore[attr-defined]
            given = {name: _tuples(item) for name, item in given.items()}
        try:
            return kind(**given)
        except TypeError as error:
            raise ValueError(f"a {kind.__name__} with the fields {sorted(given)}: {error}") from error


def _tuples(value: Any) -> Any:
    """Lists of plain values as tuples, so that a frozen record stays hashable; lists of dicts stay lists."""
    if isinstance(value, list) and not any(isinstance(item, dict) for item in value):
        return tuple(_tuples(item) for item in value)
    return value


def _read_tensor(value: Mapping[str, Any]) -> torch.Tensor:
    name, shape, data = value[_TENSOR], value.get("shape"), value.get("data")
    dtype = _DTYPES.get(name) if isinstance(name, str) else None
    if dtype is None or not isinstance(shape, list) or not isinstance(data, bytes):
        raise ValueError(f"a tensor of {value[_TENSOR]!r} is broken: dtype, shape and data do not agree")
    count = 1
    for size in shape:
        if not isinstance(size, int) or size < 0:
            raise ValueError(f"a tensor cannot have the shape {shape}")
        count *= size
    if count * dtype.itemsize != len(data):
        raise ValueError(f"a tensor of shape {shape} and {dtype} does not fit in {len(data)} bytes")
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).view(shape)


def pack(message: Any) -> bytes:
    """A message as one frame.

    ValueError if it is larger than MAX_FRAME_BYTES, holds a number of more than 64 bits, or text with half
    of a surrogate pair; TypeError as `to_plain`.
    """
    try:
        frame: bytes = msgpack.packb(to_plain(message), use_bin_type=True)
    except UnicodeEncodeError as error:
        raise ValueError("a text has half of a surrogate pair in it, which is no character") from error
    except OverflowError as error:
        raise ValueError(f"a {type(message).__name__} cannot be sent: {error}") from error
    if len(frame) > MAX_FRAME_BYTES:
        raise ValueError(
            f"a {type(message).__name__} of {len(frame)} bytes cannot be sent: a frame has at most "
            f"{MAX_FRAME_BYTES}"
        )
    return frame


def unpack(frame: bytes, types: Iterable[type]) -> Any:
    """The inverse of `pack`, building dataclasses of `types` only.

    ValueError for a frame that is too large, cut off, nested too deeply, no msgpack, or not made of `types`.
    """
    if len(frame) > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {len(frame)} bytes; at most {MAX_FRAME_BYTES} are taken")
    try:
        plain = msgpack.unpackb(frame, raw=False, strict_map_key=True)
    except (ValueError, msgpack.UnpackException) as error:  # every way for msgpack to be unhappy
        raise ValueError(
            f"a frame of {len(frame)} bytes is not a message: {error or type(error).__name__}"
        ) from error
    if _is_deeper(plain, MAX_DEPTH):
        raise ValueError(f"a frame is nested more than {MAX_DEPTH} deep")
    return from_plain(plain, types)


def reader(types: Iterable[type]) -> Callable[[bytes], Any]:
    """`unpack` for one kind of frame."""
    known = tuple(types)
    return lambda frame: unpack(frame, known)


def one_or_batch(messages: Sequence[Any], batch: Callable[[list[Any]], Any]) -> Any:
    """What is sent for `messages`, at least one: the message itself, or a `batch` of several."""
    if not messages:
        raise ValueError("there is nothing to send")
    return messages[0] if len(messages) == 1 else batch(list(messages))


def each(message: Any, batch: type) -> list[Any]:
    """The messages in one that may be a `batch`, in order."""
    if not isinstance(message, batch):
        return [message]
    return [one for inner in message.data for one in each(inner, batch)]  # type: ignore[attr-defined]


def _is_deeper(value: Any, depth: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return depth == 0 or any(_is_deeper(item, depth - 1) for item in inner)
