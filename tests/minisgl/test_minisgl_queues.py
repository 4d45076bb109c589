"""Queues keep order, wait no longer than they are told, and a publisher knows who listens."""

import asyncio
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from minisgl.message.tokenizer import TOKENIZER_TYPES, AbortMsg
from minisgl.message.utils import pack, reader
from minisgl.utils.mp import (
    ZmqAsyncPullQueue,
    ZmqPubQueue,
    ZmqPullQueue,
    ZmqPushQueue,
    ZmqSubQueue,
)

READ = reader(TOKENIZER_TYPES)
NUMBERS = itertools.count()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def address() -> Iterator[str]:
    with TemporaryDirectory(prefix="q-") as folder:  # pytest's own are too deep for a socket's path
        yield f"ipc://{folder}/{next(NUMBERS)}"


@pytest.mark.parametrize("reader_creates", [True, False])
@pytest.mark.parametrize("reader_first", [True, False])
def test_either_side_may_create_the_address_and_either_may_come_first(
    address: str, reader_creates: bool, reader_first: bool
) -> None:
    def make_pull() -> ZmqPullQueue[AbortMsg]:
        return ZmqPullQueue(address, reader_creates, READ)

    pull = make_pull() if reader_first else None
    push: ZmqPushQueue[AbortMsg] = ZmqPushQueue(address, not reader_creates, pack)
    if reader_first or reader_creates:  # who creates and has no reader yet would wait
        push.put(AbortMsg(0))
    pull = pull or make_pull()
    push.put(AbortMsg(1), timeout_s=5.0)
    wanted = [AbortMsg(0), AbortMsg(1)] if reader_first or reader_creates else [AbortMsg(1)]
    assert [pull.get(5.0) for _ in wanted] == wanted
    push.close(), pull.close()


def test_many_items_arrive_once_and_in_order(address: str) -> None:
    pull: ZmqPullQueue[AbortMsg] = ZmqPullQueue(address, True, READ)

    all_read = threading.Event()

    def send() -> None:
        push: ZmqPushQueue[AbortMsg] = ZmqPushQueue(address, False, pack)
        for uid in range(3000):
            push.put(AbortMsg(uid))
        all_read.wait(20.0)
        push.close()

    sender = threading.Thread(target=send)
    sender.start()
    got: list[AbortMsg] = []
    while len(got) < 3000:
        items = pull.drain(10.0)
        assert items
        got += items
    all_read.set()
    sender.join(10.0)
    assert [message.uid for message in got] == list(range(3000))
    assert pull.drain() == []
    pull.close()


LAST_WORDS = """
import os, sys
from minisgl.message.tokenizer import AbortMsg
from minisgl.message.utils import pack
from minisgl.utils.mp import ZmqPushQueue, let_last_words_out

push = ZmqPushQueue(sys.argv[1], False, pack)
push.put(AbortMsg(7))
print("said", flush=True)
let_last_words_out(20.0)
os._exit(1)
"""


def test_last_words_have_left_before_their_process_ends(address: str) -> None:
    command = [sys.executable, "-c", LAST_WORDS, address]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "said\n"
        time.sleep(0.3)  # whoever does not wait for the reader has ended by now
        pull: ZmqPullQueue[AbortMsg] = ZmqPullQueue(address, True, READ)
        assert pull.get(20.0) == AbortMsg(7)
        assert child.wait(60) == 1
    pull.close()


def test_nobody_waits_longer_than_they_said(address: str) -> None:
    pull: ZmqPullQueue[AbortMsg] = ZmqPullQueue(address, True, READ)
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"0\.2 s"):
        pull.get(0.2)
    assert pull.drain(0.2) == []
    assert 0.35 < time.monotonic() - start < 5.0
    pull.close()
    push: ZmqPushQueue[AbortMsg] = ZmqPushQueue(address, True, pack)  # it creates, and no reader comes
    with pytest.raises(TimeoutError, match="nobody takes"):
        push.put(AbortMsg(0), timeout_s=0.2)
    push.close()


def test_a_broken_frame_is_told_and_does_not_block_the_next(address: str) -> None:
    pull: ZmqPullQueue[AbortMsg] = ZmqPullQueue(address, True, READ)
    push: ZmqPushQueue[bytes] = ZmqPushQueue(address, False, bytes)
    push.put(b"\xc1")
    push.put(pack(AbortMsg(1)))
    with pytest.raises(ValueError, match="not a message"):
        pull.get(5.0)
    assert pull.get(5.0) == AbortMsg(1)
    push.close(), pull.close()


def test_an_address_that_cannot_be_had_is_named(address: str) -> None:
    with pytest.raises(OSError, match="no-such-folder"):
        ZmqPullQueue(f"{address}/no-such-folder/x", True, READ)


def test_a_publisher_waits_for_every_subscriber_and_then_loses_nothing(address: str) -> None:
    pub: ZmqPubQueue[AbortMsg] = ZmqPubQueue(address, True, pack)
    with pytest.raises(TimeoutError, match="0 of 2"):
        pub.wait_for_subscribers(2, 0.1)
    seen: list[list[int]] = [[], []]

    def listen(index: int) -> None:
        time.sleep(0.3 * index)
        sub: ZmqSubQueue[AbortMsg] = ZmqSubQueue(address, False, READ)
        seen[index] += [sub.get(10.0).uid for _ in range(2000)]
        with pytest.raises(TimeoutError):
            sub.get(0.05)
        sub.close()

    threads = [threading.Thread(target=listen, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    pub.wait_for_subscribers(2, 10.0)
    for uid in range(2000):
        pub.put(AbortMsg(uid))
    for thread in threads:
        thread.join(20.0)
    assert seen == [list(range(2000))] * 2
    pub.close()


def test_one_of_two_subscribers_is_not_enough(address: str) -> None:
    pub: ZmqPubQueue[AbortMsg] = ZmqPubQueue(address, True, pack)
    sub: ZmqSubQueue[AbortMsg] = ZmqSubQueue(address, False, READ)
    with pytest.raises(TimeoutError, match="1 of 2"):
        pub.wait_for_subscribers(2, 0.5)
    sub.close(), pub.close()


def test_an_event_loop_waits_without_losing_what_comes_while_it_gives_up(address: str) -> None:
    async def main() -> list[int]:
        pull: ZmqAsyncPullQueue[AbortMsg] = ZmqAsyncPullQueue(address, True, READ)
        push: ZmqPushQueue[AbortMsg] = ZmqPushQueue(address, False, pack)
        with pytest.raises(TimeoutError, match="nothing came"):
            await pull.get(0.05)
        got: list[int] = []
        for uid in range(50):
            waiting = asyncio.create_task(pull.get(5.0))
            await asyncio.sleep(0)
            waiting.cancel()  # a caller that was cancelled has taken nothing
            push.put(AbortMsg(uid))
        while len(got) < 50:
            got.append((await pull.get(5.0)).uid)
        push.close(), pull.close()
        return got

    assert asyncio.run(main()) == list(range(50))
