"""Frames: what is sent arrives, and whatever else arrives is refused."""

import contextlib
import json
import struct

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.core import frames
from judge.core.frames import FrameError
from judge.core.values import ValueFormError

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20).filter(lambda s: s.isprintable())
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("abcdt$", max_size=4), inner, max_size=3)
        | st.dictionaries(st.integers(-9, 9), inner, max_size=2)
    ),
    max_leaves=8,
)


def body_of(data: bytes) -> bytes:
    (size,) = struct.unpack("<I", data[:4])
    assert size == len(data) - 4
    return data[4:]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values)
def test_values_come_back_with_their_types(value):
    try:
        data = frames.encode("outputs", value)
    except ValueFormError:
        return  # nested deeper than a frame may be
    frame = frames.decode(body_of(data))
    assert frame.kind == "outputs"
    assert repr(frame.body) == repr(value)


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_tensors_come_back_bit_for_bit(name, shape):
    tensor = (torch.arange(24)[: max(1, int(torch.tensor(shape).prod()))] * 3 - 5).to(getattr(torch, name))
    tensor = tensor[: 0 if 0 in shape else None].reshape(shape)
    back = frames.decode(body_of(frames.encode("x", tensor))).body
    assert back.dtype == tensor.dtype
    assert back.shape == tensor.shape
    assert torch.equal(back, tensor)


def test_a_view_arrives_as_its_values():
    base = torch.arange(12).reshape(3, 4)
    back = frames.decode(body_of(frames.encode("x", [base.T, base[:, ::2]]))).body
    assert torch.equal(back[0], base.T)
    assert torch.equal(back[1], base[:, ::2])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_floats_that_json_lacks(value):
    assert repr(frames.decode(body_of(frames.encode("x", value))).body) == repr(value)


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"bytes", 1 << 63, 1j, "\ud800", torch.zeros(2, dtype=torch.complex64)]
)
def test_other_values_are_named_when_they_are_sent(value):
    with pytest.raises(ValueFormError) as caught:
        frames.encode("x", {"field": [value]})
    assert caught.value.field == ".field[0]"


def raw(header: object, blobs: bytes = b"") -> bytes:
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<I", len(head)) + head + blobs


DEEP = 1
for _ in range(12):
    DEEP = [DEEP]

BAD = {
    "empty": b"",
    "short": b"\1",
    "header longer than the frame": struct.pack("<I", 100) + b"{}",
    "no json": raw(b"{nope"),
    "no utf-8": raw(b'{"kind": "\xff"}'),
    "an array": raw([1]),
    "no body": raw({"kind": "x"}),
    "an extra key": raw({"kind": "x", "body": 1, "more": 2}),
    "a key twice": raw(b'{"kind": "x", "kind": "y", "body": 1}'),
    "kind too long": raw({"kind": "x" * 99, "body": 1}),
    "kind is a number": raw({"kind": 3, "body": 1}),
    "NaN": raw(b'{"kind": "x", "body": NaN}'),
    "Infinity": raw(b'{"kind": "x", "body": -Infinity}'),
    "1e999": raw(b'{"kind": "x", "body": 1e999}'),
    "a huge int": raw(b'{"kind": "x", "body": ' + b"9" * 5000 + b"}"),
    "too deep": raw({"kind": "x", "body": DEEP}),
    "absurdly deep": raw(b'{"kind": "x", "body": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "too many leaves": raw({"kind": "x", "body": [0] * 30_000}),
    "a long string": raw({"kind": "x", "body": "x" * 70_000}),
    "two keys": raw({"kind": "x", "body": {"t": ["int8", [1]], "u": []}}, b"\0"),
    "an unknown tag": raw({"kind": "x", "body": {"pickle": "gASV"}}),
    "an unknown float": raw({"kind": "x", "body": {"f": "1e999"}}),
    "an unknown dtype": raw({"kind": "x", "body": {"t": ["object", [1]]}}, b"\0" * 8),
    "a negative shape": raw({"kind": "x", "body": {"t": ["int8", [-1]]}}),
    "a shape of floats": raw({"kind": "x", "body": {"t": ["int8", [1.0]]}}, b"\0"),
    "a shape of bools": raw({"kind": "x", "body": {"t": ["int8", [True]]}}, b"\0"),
    "an enormous shape": raw({"kind": "x", "body": {"t": ["int8", [1 << 40]]}}),
    "a product that overflows": raw({"kind": "x", "body": {"t": ["int8", [1 << 20, 1 << 20, 1 << 20]]}}),
    "a huge empty shape": raw({"kind": "x", "body": {"t": ["int8", [0, 1 << 26, 1 << 26, 1 << 26]]}}),
    "too many dimensions": raw({"kind": "x", "body": {"t": ["int8", [1] * 9]}}, b"\0"),
    "too few bytes": raw({"kind": "x", "body": {"t": ["int32", [2]]}}, b"\0" * 7),
    "bytes left over": raw({"kind": "x", "body": {"t": ["int32", [1]]}}, b"\0" * 5),
    "a bool of 2": raw({"kind": "x", "body": {"t": ["bool", [1]]}}, b"\2"),
    "a mapping of no pairs": raw({"kind": "x", "body": {"m": [[1]]}}),
    "a mapping key twice": raw({"kind": "x", "body": {"m": [[1, 2], [1, 3]]}}),
    "a mapping keyed by a list": raw({"kind": "x", "body": {"m": [[[1], 2]]}}),
}


@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_refused(name):
    with pytest.raises(FrameError):
        frames.decode(BAD[name])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_frame_errors(data):
    with contextlib.suppress(FrameError):
        frames.decode(data)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_frames_raise_nothing_but_frame_errors(data):
    good = bytearray(
        body_of(frames.encode("outputs", {"a": torch.arange(5, dtype=torch.int32), "b": [1, 2.5, "x"]}))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(good) - 1))
        good[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(good)))
    with contextlib.suppress(FrameError):
        frames.decode(good[:cut])


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "bool", "float64"])
@pytest.mark.parametrize(
    "cut", [lambda x: x[:1, ::16], lambda x: x[3:4, 5:6], lambda x: x.t()[:1, :1], lambda x: x[2, 7]]
)
def test_a_single_element_crosses_whatever_its_stride(dtype, cut):
    value = cut(torch.arange(64 * 16).reshape(64, 16).to(getattr(torch, dtype)))
    frame = frames.decode(frames.encode("outputs", {"x": value})[4:])
    assert torch.equal(frame.body["x"], value)
    assert frame.body["x"].shape == value.shape
