"""What chapters' tests share. They run in the checkout, and on each chapter's own tree, where this file and
the tests are all that is beside the tree: so they import the engine, the fakes and nothing else of the
repository at the top."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch


@pytest.fixture(autouse=True)
def _fresh_process_state() -> Iterator[None]:
    """The context and the rank belong to the process; a test leaves neither behind, also when it fails."""
    yield
    # By way of sys.modules: the first chapters' trees do not have these modules.
    if core := sys.modules.get("minisgl.core"):
        core.reset_global_ctx()
    if distributed := sys.modules.get("minisgl.distributed"):
        distributed.reset_tp_info()


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """MINISGL_MODEL, as `steps.py check` sets it, or the thin model, made if need be."""
    if given := os.environ.get("MINISGL_MODEL"):
        return Path(given)
    from tools.models import cached

    return cached("thin")


@pytest.fixture
def drive(model_folder: Path) -> Iterator[Callable[..., Any]]:
    """drive(**settings): a scheduler that is stepped by hand, in a pool of 64 tokens, with every page checked
    after every step. `ask` and `abort` put messages into its inbox, `told` and `ended` keep its replies; a
    second end of a request, or anything said after it, fails. For chapters from the seventh on."""
    from minisgl.core import SamplingParams
    from minisgl.distributed import DistributedInfo
    from minisgl.message.backend import AbortBackendMsg, UserMsg
    from minisgl.scheduler.config import SchedulerConfig
    from minisgl.scheduler.scheduler import Scheduler

    class Driven(Scheduler):
        def __init__(self, config: SchedulerConfig) -> None:
            super().__init__(config)
            self.inbox: list[Any] = []
            self.told: dict[int, list[int]] = {}
            self.ended: dict[int, Any] = {}

        def receive_msg(self, blocking: bool) -> list[Any]:
            messages, self.inbox = self.inbox, []
            return messages

        def send_result(self, reply: Sequence[Any]) -> None:
            for message in reply:
                assert message.uid not in self.ended, (
                    f"request {message.uid} was told something after its end"
                )
                tokens = self.told.setdefault(message.uid, [])
                if message.next_token is not None:
                    tokens.append(message.next_token)
                if message.finished:
                    self.ended[message.uid] = message

        def ask(self, uid: int, prompt: Sequence[int], max_tokens: int, **params: Any) -> None:
            ids = torch.tensor(list(prompt), dtype=torch.int32)
            wanted = SamplingParams(max_tokens=max_tokens, **{"ignore_eos": True, **params})
            self.inbox.append(UserMsg(uid, ids, wanted))

        def abort(self, uid: int) -> None:
            self.inbox.append(AbortBackendMsg(uid))

        def run(self) -> None:
            """Step until nothing is left to do; then nothing may be anybody's."""
            for _ in range(1000):
                if not self.inbox and not self.has_work:
                    break
                self.step()
            assert not self.has_work, "not done after 1000 steps"
            assert self.cache_manager.available_pages == self.engine.num_pages
            assert self.table_manager.available_size == self.config.max_running_req

    built: list[Driven] = []

    def build(**settings: Any) -> Driven:
        while built:
            built.pop().shutdown()
        config = {
            "tp_info": DistributedInfo(0, 1),
            "dtype": torch.float32,
            "device": torch.device("cpu"),
            "max_running_req": 4,
            "num_page_override": 64 // settings.get("page_size", 1),
            "max_seq_len_override": 48,
            "cache_type": "naive",
            "overlap": False,
            "check_pages": True,
            **settings,
        }
        built.append(Driven(SchedulerConfig(model_path=str(model_folder), **config)))
        return built[0]

    yield build
    while built:
        built.pop().shutdown()
