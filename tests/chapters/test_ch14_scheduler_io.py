"""Chapter 14: ranks agree on every step, and a request that is aborted anywhere frees its pages once."""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

import minisgl.scheduler.io as scheduler_io
from minisgl.core import SamplingParams
from minisgl.distributed import DistributedInfo
from minisgl.message.backend import AbortBackendMsg, BaseBackendMsg, ExitMsg, UserMsg
from minisgl.message.tokenizer import TOKENIZER_TYPES, BatchTokenizerMsg, DetokenizeMsg
from minisgl.message.utils import each, pack, reader
from minisgl.scheduler.config import SchedulerConfig
from minisgl.scheduler.io import SchedulerIOMixin
from minisgl.scheduler.scheduler import Scheduler
from minisgl.utils.mp import ZmqPullQueue, ZmqPushQueue

Configure = Callable[..., SchedulerConfig]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """The model is small and the machine may be busy: threads that wait for one another only slow it down."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def configure() -> Iterator[Configure]:
    with TemporaryDirectory(prefix="ch14-") as folder:

        def make(rank: int = 0, size: int = 1, model: str = "unused", **more: object) -> SchedulerConfig:
            info = DistributedInfo(rank, size)
            return SchedulerConfig(
                model, info, torch.float32, device=torch.device("cpu"), socket_folder=folder, **more
            )

        yield make


def test_a_late_rank_misses_nothing_and_sees_it_at_the_same_step(configure: Configure) -> None:
    def rank(number: int) -> list[list[BaseBackendMsg]]:
        time.sleep(0.3 * number)
        io = SchedulerIOMixin(configure(number, 2))
        steps: list[list[BaseBackendMsg]] = []
        while not steps or ExitMsg() not in steps[-1]:
            steps.append(io.receive_msg(blocking=len(steps) % 2 == 0))
        io.close_io()
        return steps

    outlet: ZmqPushQueue[BaseBackendMsg] = ZmqPushQueue(configure().address("backend"), False, pack)
    with ThreadPoolExecutor(2) as pool:
        ranks = [pool.submit(rank, number) for number in range(2)]
        for uid in range(40):
            outlet.put(AbortBackendMsg(uid))
            time.sleep(0.5 if uid == 20 else 0.001)
        outlet.put(ExitMsg())
        first, second = (one.result(30.0) for one in ranks)
    outlet.close()
    assert first == second
    assert [one for step in first for one in step] == [
        *(AbortBackendMsg(uid) for uid in range(40)),
        ExitMsg(),
    ]


def test_an_idle_scheduler_sleeps(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_io, "IDLE_S", 0.5)
    io = SchedulerIOMixin(configure())
    wall, used = time.monotonic(), time.thread_time()
    assert io.receive_msg(blocking=True) == []
    assert time.monotonic() - wall > 0.4
    assert time.thread_time() - used < 0.1
    io.close_io()


def test_requests_aborted_anywhere_end_once_and_leave_no_page(
    configure: Configure, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting, halfway through a chunked prompt, decoding, with a batch on the device, or over already."""
    monkeypatch.setattr(scheduler_io, "IDLE_S", 0.01)
    config = configure(
        model=str(model_folder), page_size=2, max_running_req=3, num_page_override=64, max_seq_len_override=64,
        max_extend_tokens=8, check_pages=True, overlap=True,
    )  # fmt: skip
    scheduler = Scheduler(config)
    outlet: ZmqPushQueue[BaseBackendMsg] = ZmqPushQueue(config.address("backend"), False, pack)
    inlet: ZmqPullQueue[object] = ZmqPullQueue(config.tokenizer_addresses[0], True, reader(TOKENIZER_TYPES))
    draw = random.Random(0)
    ended: dict[int, str | None] = {}
    asked, step = 0, 0
    try:
        while asked < 8 or len(ended) < 8:
            if asked < 8 and draw.random() < 0.5:
                ids = torch.tensor(
                    [draw.randrange(400) for _ in range(draw.randrange(1, 24))], dtype=torch.int32
                )
                outlet.put(
                    UserMsg(asked, ids, SamplingParams(max_tokens=draw.randrange(1, 5), ignore_eos=True))
                )
                asked += 1
            if asked and draw.random() < 0.3:
                outlet.put(AbortBackendMsg(draw.randrange(asked)))
            time.sleep(0.002)  # for what was just sent to arrive
            scheduler.step()
            for message in inlet.drain(0.01):
                for one in each(message, BatchTokenizerMsg):
                    assert isinstance(one, DetokenizeMsg)
                    assert one.uid not in ended, "nothing is sent after the end"
                    if one.finished:
                        ended[one.uid] = one.finish_reason
            step += 1
            assert step < 2000
        assert {"abort", "length"} <= set(ended.values())
        assert scheduler.status()["available_pages"] == 64
    finally:
        scheduler.shutdown()
        outlet.close(), inlet.close()
