"""A message that becomes bytes and comes back is the same; nothing else comes out of bytes, whatever they are."""

import contextlib
from typing import Any

import msgpack
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minisgl.message.utils as codec
from minisgl.core import SamplingParams
from minisgl.message.backend import (
    BACKEND_TYPES,
    AbortBackendMsg,
    AskStatusBackendMsg,
    BatchBackendMsg,
    ExitMsg,
    UserMsg,
)
from minisgl.message.frontend import (
    FRONTEND_TYPES,
    BatchFrontendMsg,
    StatusReply,
    TokenReport,
    TokenText,
    UserReply,
    WorkerMsg,
)
from minisgl.message.tokenizer import (
    TOKENIZER_TYPES,
    AbortMsg,
    AskStatusMsg,
    BatchTokenizerMsg,
    DetokenizeMsg,
    SchedulerStatusMsg,
    TokenizeMsg,
    TokenLogprobs,
)
from minisgl.message.utils import each, one_or_batch, pack, to_plain, unpack

ALL_TYPES = {*BACKEND_TYPES, *TOKENIZER_TYPES, *FRONTEND_TYPES}
PARAMS = SamplingParams(temperature=0.5, stop=("。", "\n\n"), stop_token_ids=(3,), seed=-5, logprobs=2, n=1)
REPORT = TokenReport(
    TokenText("\ufffd", b"\xe4\xb8", -0.5), (TokenText("a", b"a", -0.5), TokenText("▁b", None, -1.5)), 3
)
MESSAGES: list[Any] = [
    UserMsg(3, torch.tensor([1, 2, 151_935], dtype=torch.int32), PARAMS),
    UserMsg(3, torch.empty(0, dtype=torch.int32), SamplingParams()),
    AbortBackendMsg(2**62),
    AskStatusBackendMsg(1),
    ExitMsg(),
    BatchBackendMsg([AbortBackendMsg(1), UserMsg(2, torch.arange(5, dtype=torch.int32), PARAMS)]),
    BatchBackendMsg([]),
    TokenizeMsg(1, "中文🎉\0", PARAMS),
    TokenizeMsg(1, [{"role": "user", "content": "hi"}], PARAMS, {"enable_thinking": False, "tools": [1]}),
    TokenizeMsg(1, (5, 6, 7), PARAMS),
    AbortMsg(1),
    AskStatusMsg(1),
    SchedulerStatusMsg(1, {"num_pages": 3}),
    DetokenizeMsg(1, 7, finished=False, logprobs=TokenLogprobs(-0.25, ((7, -0.25), (8, -2.0)))),
    DetokenizeMsg(1, None, finished=True, finish_reason="error", error="无法"),
    BatchTokenizerMsg([DetokenizeMsg(1, 7, finished=False)] * 2),
    UserReply(1, "", finished=True, finish_reason="stop", reports=(REPORT, REPORT)),
    StatusReply(1, {"running": 0}),
    WorkerMsg("scheduler rank 0", "it broke"),
    BatchFrontendMsg([UserReply(1, "x", finished=False)] * 2),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_back_as_it_was(message: Any) -> None:
    back = unpack(pack(message), ALL_TYPES)
    assert type(back) is type(message)
    assert to_plain(back) == to_plain(message)
    if type(message).__eq__ is not object.__eq__:
        assert back == message


def test_every_type_of_message_is_tried() -> None:
    assert {type(message) for message in MESSAGES} | {
        SamplingParams, TokenText, TokenReport, TokenLogprobs
    } == ALL_TYPES  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32])
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (2, 0, 3), ()])
def test_tensors_keep_dtype_shape_and_values(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.arange(torch.Size(shape).numel()).to(dtype).reshape(shape)
    back = unpack(pack(tensor), ())
    assert back.dtype == dtype
    assert torch.equal(back, tensor)
    back += 1  # its memory is its own, and may be written


def test_a_tensor_that_is_a_view_sends_its_own_elements_only() -> None:
    rows = torch.arange(10_000, dtype=torch.int32).reshape(100, 100)
    frame = pack(rows[:, 3])
    assert len(frame) < 1000
    assert torch.equal(unpack(frame, ()), rows[:, 3])


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (object(), TypeError, "object"),
        (torch.zeros(2, dtype=torch.float64), TypeError, "float64"),
        ({1: 2}, TypeError, "text keys"),
        ({"__type__": "UserMsg"}, TypeError, "two underscores"),
        (AbortMsg(2**64), ValueError, "AbortMsg"),
        (TokenizeMsg(1, "\ud800", PARAMS), ValueError, "surrogate"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_the_sender(value: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        pack(value)


def plain(value: Any) -> bytes:
    return msgpack.packb(value)


@pytest.mark.parametrize(
    "frame",
    [
        pack(UserMsg(1, torch.arange(3, dtype=torch.int32), PARAMS)),  # not a type for the front end
        plain({"__type__": "Popen", "args": ["true"]}),
        plain({"__type__": ["UserReply"]}),
        plain({"__type__": "UserReply", "uid": 1, "text": "", "finished": True, "extra": 1}),
        plain({"__type__": "UserReply", "uid": 1}),
        plain({"__tensor__": "torch.int32", "shape": [3], "data": b"1234"}),
        plain({"__tensor__": "torch.int32", "shape": [-1], "data": b"1234"}),
        plain({"__tensor__": "torch.int32", "shape": [2**40, 2**40], "data": b""}),
        plain({"__tensor__": "torch.complex64", "shape": [1], "data": b"12345678"}),
        plain({"__tensor__": [], "shape": [1], "data": b"1234"}),
        plain({"__tensor__": "torch.int32", "shape": 1, "data": b"1234"}),
        plain({1: 2}),
        b"\x91" * 200 + b"\xc0",  # a list in a list in a list ...
        b"",
        b"\xc1",
        pack(ExitMsg()) + b"\x00",
    ],
)
def test_a_frame_that_is_no_message_is_refused(frame: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        unpack(frame, FRONTEND_TYPES)


def test_a_frame_cut_anywhere_is_refused() -> None:
    frame = pack(MESSAGES[0])
    for end in range(len(frame)):
        with pytest.raises(ValueError, match="not a message"):
            unpack(frame[:end], ALL_TYPES)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["__type__", "__tensor__", "shape", "data", "uid", "text", "finished", "x"]),
            inner,
        )
        | inner.map(lambda value: {"__type__": "UserReply", "uid": value, "text": value, "finished": value})
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40) | PLAIN.map(plain))
def test_bytes_from_anywhere_are_a_message_or_a_value_error(frame: bytes) -> None:
    with contextlib.suppress(ValueError):
        unpack(frame, ALL_TYPES)


def test_a_frame_has_a_largest_size_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    message = TokenizeMsg(1, "x" * 5000, PARAMS)
    frame = pack(message)
    monkeypatch.setattr(codec, "MAX_FRAME_BYTES", 4096)
    with pytest.raises(ValueError, match="at most 4096"):
        pack(message)
    with pytest.raises(ValueError, match="at most 4096"):
        unpack(frame, TOKENIZER_TYPES)


def test_one_message_goes_alone_and_several_go_together() -> None:
    first, second, third = (AbortMsg(uid) for uid in range(3))
    assert one_or_batch([first], BatchTokenizerMsg) is first
    batch = one_or_batch([first, second], BatchTokenizerMsg)
    assert each(batch, BatchTokenizerMsg) == [first, second]
    assert each(third, BatchTokenizerMsg) == [third]
    assert each(BatchTokenizerMsg([batch, third]), BatchTokenizerMsg) == [first, second, third]
    with pytest.raises(ValueError, match="nothing"):
        one_or_batch([], BatchTokenizerMsg)
