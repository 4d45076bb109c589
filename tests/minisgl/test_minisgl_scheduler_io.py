"""Ranks see the same messages at the same step whatever the timing, results leave once, and nobody spins."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

import pytest
import torch

import minisgl.scheduler.io as scheduler_io
from minisgl.core import SamplingParams
from minisgl.distributed import DistributedInfo
from minisgl.message.backend import AbortBackendMsg, BaseBackendMsg, BatchBackendMsg, ExitMsg, UserMsg
from minisgl.message.tokenizer import TOKENIZER_TYPES, BatchTokenizerMsg, DetokenizeMsg
from minisgl.message.utils import each, pack, reader, to_plain
from minisgl.scheduler.config import SchedulerConfig
from minisgl.scheduler.io import SchedulerIOMixin
from minisgl.utils.mp import ZmqPullQueue, ZmqPushQueue

Configure = Callable[..., SchedulerConfig]


@pytest.fixture
def configure() -> Iterator[Configure]:
    with TemporaryDirectory(prefix="io-") as folder:

        def make(rank: int = 0, size: int = 1, timeout: float = 10.0, tokenizers: int = 1) -> SchedulerConfig:
            return SchedulerConfig(
                "unused",
                DistributedInfo(rank, size),
                torch.float32,
                socket_folder=folder,
                num_tokenizer=tokenizers,
                distributed_timeout=timeout,
            )

        yield make


def prompt(uid: int) -> UserMsg:
    return UserMsg(uid, torch.arange(uid % 7 + 1, dtype=torch.int32), SamplingParams(seed=uid))


def test_every_rank_sees_the_same_messages_at_the_same_step(configure: Configure) -> None:
    def rank(number: int) -> list[list[object]]:
        time.sleep(0.2 * number)  # the later ones are not there when the first messages are sent
        io = SchedulerIOMixin(configure(number, 3))
        draw = random.Random(number)
        steps: list[list[object]] = []
        while True:
            messages = io.receive_msg(blocking=len(steps) % 3 == 0)
            steps.append([to_plain(message) for message in messages])
            if any(isinstance(message, ExitMsg) for message in messages):
                io.close_io()
                return steps
            time.sleep(draw.random() * 0.002)  # steps take different times on different ranks

    outlet: ZmqPushQueue[BaseBackendMsg] = ZmqPushQueue(configure().address("backend"), False, pack)
    sent: list[BaseBackendMsg] = []
    with ThreadPoolExecutor(3) as pool:
        ranks = [pool.submit(rank, number) for number in range(3)]
        draw = random.Random(0)
        for uid in range(300):
            message = prompt(uid) if draw.random() < 0.7 else AbortBackendMsg(uid - 1)
            if draw.random() < 0.2:
                more = prompt(1000 + uid)
                outlet.put(BatchBackendMsg([message, more]))
                sent += [message, more]
            else:
                outlet.put(message)
                sent.append(message)
            time.sleep(0.8 if uid == 20 else draw.random() * 0.002)  # by then, all of them listen
        outlet.put(ExitMsg())
        seen = [one.result(30.0) for one in ranks]
    outlet.close()
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) > 20  # in many steps, some of them without a message
    assert [] in seen[0]
    assert [message for step in seen[0] for message in step] == [to_plain(one) for one in [*sent, ExitMsg()]]


def test_a_rank_that_never_listens_is_missed_in_time(configure: Configure) -> None:
    with pytest.raises(TimeoutError, match="0 of 1"):
        SchedulerIOMixin(configure(0, 2, timeout=0.3))


def test_a_first_rank_that_is_silent_is_missed_in_time(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_io, "IDLE_S", 0.1)
    io = SchedulerIOMixin(configure(1, 2, timeout=0.2))
    with pytest.raises(TimeoutError, match="nothing came"):
        io.receive_msg(blocking=True)
    io.close_io()


def test_idle_ranks_sleep_and_know_that_the_others_live(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_io, "IDLE_S", 0.3)
    used: dict[int, float] = {}

    def rank(number: int) -> list[int]:
        io = SchedulerIOMixin(configure(number, 2, timeout=1.0))
        start = time.thread_time()
        counts = [len(io.receive_msg(blocking=True)) for _ in range(5)]
        used[number] = time.thread_time() - start
        io.close_io()
        return counts

    with ThreadPoolExecutor(2) as pool:
        start = time.monotonic()
        assert list(pool.map(rank, range(2))) == [[0] * 5] * 2
    assert time.monotonic() - start > 1.2
    assert max(used.values()) < 0.1  # of processor time, in 1.5 s


def test_a_blocking_wait_ends_with_the_message(configure: Configure) -> None:
    io = SchedulerIOMixin(configure())
    outlet: ZmqPushQueue[BaseBackendMsg] = ZmqPushQueue(configure().address("backend"), False, pack)

    def send_later() -> None:
        time.sleep(0.3)
        outlet.put(AbortBackendMsg(1))

    thread = threading.Thread(target=send_later)
    start = time.monotonic()
    thread.start()
    assert io.receive_msg(blocking=True) == [AbortBackendMsg(1)]
    assert 0.25 < time.monotonic() - start < 3.0
    assert io.receive_msg(blocking=False) == []
    thread.join(5.0)
    outlet.close(), io.close_io()


def test_results_go_to_the_tokenizer_of_their_request_once(configure: Configure) -> None:
    tokenizers = [
        ZmqPullQueue[object](address, True, reader(TOKENIZER_TYPES))
        for address in configure(tokenizers=3).tokenizer_addresses
    ]

    done = threading.Event()

    def other_rank() -> None:
        io = SchedulerIOMixin(configure(1, 2, tokenizers=3))
        io.send_result([DetokenizeMsg(uid, 1, False) for uid in range(7)])
        done.wait(20.0)
        io.close_io()

    thread = threading.Thread(target=other_rank)
    thread.start()
    io = SchedulerIOMixin(configure(0, 2, tokenizers=3))
    reply = [DetokenizeMsg(uid, 10 * uid, False) for uid in range(7)]
    io.send_result(reply)
    io.send_result([])
    got = [each(queue.get(5.0), BatchTokenizerMsg) for queue in tokenizers]
    assert got == [[one for one in reply if one.uid % 3 == index] for index in range(3)]
    done.set()
    thread.join(5.0)
    assert [queue.drain(0.1) for queue in tokenizers] == [[], [], []]
    for queue in tokenizers:
        queue.close()
    io.close_io()


def test_without_sockets_a_subclass_says_where_messages_come_from() -> None:
    io = SchedulerIOMixin(SchedulerConfig("unused", DistributedInfo(0, 1), torch.float32))
    with pytest.raises(NotImplementedError, match="no sockets"):
        io.receive_msg(blocking=False)
    with pytest.raises(NotImplementedError, match="no sockets"):
        io.send_result([])
    io.close_io()
