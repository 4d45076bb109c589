"""Chapter 12: messages are bytes on the way and themselves at both ends, and no wait is for ever."""

import threading
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest
import torch

from minisgl.core import SamplingParams
from minisgl.message.backend import BACKEND_TYPES, AbortBackendMsg, BatchBackendMsg, UserMsg
from minisgl.message.frontend import FRONTEND_TYPES, UserReply
from minisgl.message.utils import each, one_or_batch, pack, reader, unpack
from minisgl.utils.mp import ZmqPubQueue, ZmqPullQueue, ZmqPushQueue, ZmqSubQueue

READ = reader(BACKEND_TYPES)


@pytest.fixture
def address() -> Iterator[str]:
    with TemporaryDirectory(prefix="ch12-") as folder:
        yield f"ipc://{folder}/queue"


def test_a_request_crosses_as_bytes_and_keeps_its_tensor() -> None:
    params = SamplingParams(temperature=0.5, stop=("。",), seed=7)
    back = unpack(pack(UserMsg(1, torch.tensor([5, 151_935], dtype=torch.int32), params)), BACKEND_TYPES)
    assert (back.uid, back.sampling_params) == (1, params)
    assert back.input_ids.dtype == torch.int32
    assert back.input_ids.tolist() == [5, 151_935]


def test_the_receiver_decides_what_may_be_built() -> None:
    with pytest.raises(ValueError, match="'UserReply' is not expected here"):
        unpack(pack(UserReply(1, "x", finished=False)), BACKEND_TYPES)
    with pytest.raises(ValueError, match="not a message"):
        unpack(pack(UserReply(1, "x", finished=False))[:-1], FRONTEND_TYPES)


def test_several_messages_make_one_frame() -> None:
    messages = [AbortBackendMsg(uid) for uid in range(3)]
    assert (
        each(unpack(pack(one_or_batch(messages, BatchBackendMsg)), BACKEND_TYPES), BatchBackendMsg)
        == messages
    )
    assert one_or_batch(messages[:1], BatchBackendMsg) is messages[0]


def test_a_queue_keeps_order_and_its_reader_does_not_wait_for_ever(address: str) -> None:
    push: ZmqPushQueue[AbortBackendMsg] = ZmqPushQueue(address, False, pack)  # before the reader is there
    push.put(AbortBackendMsg(1))
    pull: ZmqPullQueue[AbortBackendMsg] = ZmqPullQueue(address, True, READ)
    push.put(AbortBackendMsg(2))
    assert [pull.get(10.0).uid for _ in range(2)] == [1, 2]
    with pytest.raises(TimeoutError):
        pull.get(0.05)
    push.close(), pull.close()


def test_a_broadcast_waits_until_everybody_listens(address: str) -> None:
    pub: ZmqPubQueue[AbortBackendMsg] = ZmqPubQueue(address, True, pack)
    seen: list[int] = []

    def listen() -> None:
        sub: ZmqSubQueue[AbortBackendMsg] = ZmqSubQueue(address, False, READ)
        seen.append(sub.get(10.0).uid)
        sub.close()

    late = threading.Timer(0.3, listen)
    late.start()
    pub.wait_for_subscribers(1, 10.0)  # without this line the message would be lost
    pub.put(AbortBackendMsg(4))
    late.join(10.0)
    assert seen == [4]
    pub.close()
