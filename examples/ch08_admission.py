"""Chapter 8: who is let in. A request starts only when every page that it may ever need can be kept for it.

The pool has 12 pages of 4 tokens. A and B fit together; C has to wait until one of them has ended; D has a
prompt that no pool of this size can hold, and is told so at once. After each step: how many pages are free, how
many of those are promised to running requests, how many the requests have, and who waits.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from minisgl.core import SamplingParams  # noqa: E402
from minisgl.distributed import DistributedInfo  # noqa: E402
from minisgl.message.backend import BaseBackendMsg, UserMsg  # noqa: E402
from minisgl.message.tokenizer import DetokenizeMsg  # noqa: E402
from minisgl.scheduler.config import SchedulerConfig  # noqa: E402
from minisgl.scheduler.scheduler import Scheduler  # noqa: E402

PAGE_SIZE, PAGES = 4, 12
NAMES = "ABCD"
PROMPT_LENS = [9, 6, 11, 60]
NEW_TOKENS = [6, 13, 10, 4]


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("qwen3"))


class Watched(Scheduler):
    """All requests arrive at the first step; what is said about their ends is kept for the table."""

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__(config)
        self.inbox: list[BaseBackendMsg] = [
            UserMsg(
                uid,
                torch.arange(length, dtype=torch.int32) + 10 * (uid + 1),
                SamplingParams(max_tokens=new_tokens, ignore_eos=True),
            )
            for uid, (length, new_tokens) in enumerate(zip(PROMPT_LENS, NEW_TOKENS, strict=True))
        ]
        self.ended: list[str] = []

    def receive_msg(self, blocking: bool) -> list[BaseBackendMsg]:
        messages, self.inbox = self.inbox, []
        return messages

    def send_result(self, reply: list[DetokenizeMsg]) -> None:
        for message in reply:
            if message.error is not None:
                print(f"{NAMES[message.uid]} 立即被拒绝: {message.error}")
            if message.finished:
                self.ended.append(NAMES[message.uid])


def main() -> None:
    scheduler = Watched(
        SchedulerConfig(
            model_path=model_folder(),
            tp_info=DistributedInfo(0, 1),
            dtype=torch.float32,
            device=torch.device("cpu"),
            page_size=PAGE_SIZE,
            num_page_override=PAGES,
            max_running_req=4,
            cache_type="naive",
            overlap=False,
            check_pages=True,
        )
    )
    for name, length, new_tokens in zip(NAMES, PROMPT_LENS, NEW_TOKENS, strict=True):
        most = -(-(length + new_tokens - 1) // PAGE_SIZE)
        print(f"{name}: 提示词 {length} 个 token，最多再生成 {new_tokens} 个，最多要 {most} 页")
    step = 0
    while step == 0 or scheduler.has_work:
        scheduler.step()
        if step == 0:
            print("步   空闲  其中预留  锁定  占用  在跑   等待   结束")
        step += 1
        cache, decode = scheduler.cache_manager, scheduler.decode_manager
        running = "".join(NAMES[req.uid] for req in decode.running)
        waiting = "".join(NAMES[pending.uid] for pending in scheduler.prefill_manager.pending)
        locked = cache.prefix_cache.size_info().protected // PAGE_SIZE
        print(
            f"{step:>3}{cache.free_pages:>6}{decode.reserved_pages:>8}{locked:>8}"
            f"{PAGES - cache.available_pages - locked:>6}  {running:<7}{waiting:<7}{''.join(scheduler.ended)}"
        )
    scheduler.shutdown()


if __name__ == "__main__":
    main()
