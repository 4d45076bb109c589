"""Chapter 7: continuous batching. Requests come and go while others are running, and every step is one batch.

Three requests: A and B arrive together, C arrives when they are already decoding. Each step prints which batch
the scheduler chose, how many tokens each request computes in it, what was said, and who finished and why. The
same work in a batch that waits for its slowest member would take as many steps as the last line says.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from minisgl.core import Batch, SamplingParams  # noqa: E402
from minisgl.distributed import DistributedInfo  # noqa: E402
from minisgl.message.backend import BaseBackendMsg, UserMsg  # noqa: E402
from minisgl.message.tokenizer import DetokenizeMsg  # noqa: E402
from minisgl.scheduler.config import SchedulerConfig  # noqa: E402
from minisgl.scheduler.scheduler import Scheduler  # noqa: E402
from minisgl.scheduler.utils import InFlight  # noqa: E402

NAMES = "ABC"
PROMPTS = [[40, 71, 82, 303, 9], [17, 256, 301, 444, 120, 33, 78, 402], [5, 6, 7]]
NEW_TOKENS = [4, 7, 3]
ARRIVES_AT = [1, 1, 3]  # step


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("qwen3"))


class Watched(Scheduler):
    """A scheduler whose requests arrive by a timetable, and which notes what each step does."""

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__(config)
        self.now = 0
        self.batch: Batch | None = None
        self.computes: list[str] = []
        self.said: list[str] = []
        self.ended: list[str] = []

    def receive_msg(self, blocking: bool) -> list[BaseBackendMsg]:
        return [
            UserMsg(
                uid,
                torch.tensor(PROMPTS[uid], dtype=torch.int32),
                SamplingParams(max_tokens=NEW_TOKENS[uid], ignore_eos=True),
            )
            for uid, step in enumerate(ARRIVES_AT)
            if step == self.now
        ]

    def send_result(self, reply: list[DetokenizeMsg]) -> None:
        for message in reply:
            self.said.append(f"{NAMES[message.uid]}→{message.next_token}")
            if message.finished:
                self.ended.append(f"{NAMES[message.uid]}（{message.finish_reason}）")

    def _launch(self, batch: Batch) -> InFlight:
        self.batch = batch
        self.computes = [f"{NAMES[req.uid]}({req.extend_len})" for req in batch.reqs]
        return super()._launch(batch)

    def watched_step(self) -> None:
        self.now += 1
        self.said, self.ended = [], []
        self.step()
        assert self.batch is not None
        print(
            f"{self.now:>3}  {self.batch.phase:<8}{' '.join(self.computes):<16}"
            f"{' '.join(self.said):<30}{' '.join(self.ended)}"
        )


def main() -> None:
    scheduler = Watched(
        SchedulerConfig(
            model_path=model_folder(),
            tp_info=DistributedInfo(0, 1),
            dtype=torch.float32,
            device=torch.device("cpu"),
            max_running_req=4,
            num_page_override=64,
            max_seq_len_override=32,
            cache_type="naive",
            overlap=False,
        )
    )
    print("步   批      算几个 token    说出                          结束")
    scheduler.watched_step()
    while scheduler.has_work:
        scheduler.watched_step()
    static = max(NEW_TOKENS[:2]) + NEW_TOKENS[2]
    print(f"连续批处理 {scheduler.now} 步；静态批处理（A、B 一批跑完再跑 C）{static} 步")
    scheduler.shutdown()


if __name__ == "__main__":
    main()
