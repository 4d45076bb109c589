"""Chapter 10: a long prompt is computed in chunks, and those who are decoding do not wait for all of it.

A is decoding when B arrives with 30 tokens. Two timelines, one column a step: with a large budget B's prompt is
one batch, with a budget of 8 it is four, and A says a token between two of them. The tokens are the same.
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

PROMPTS = [[40, 71, 82], [(37 * i) % 480 + 5 for i in range(30)]]
NEW_TOKENS = [8, 3]
ARRIVES_AT = [0, 2]  # step


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("qwen3"))


class Watched(Scheduler):
    """Notes, for each request and step, how many tokens it computed and whether it said one."""

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__(config)
        self.now = -1
        self.cells: list[dict[int, str]] = []
        self.tokens: list[list[int]] = [[], []]

    def receive_msg(self, blocking: bool) -> list[BaseBackendMsg]:
        self.now += 1
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
            assert message.next_token is not None
            self.tokens[message.uid].append(message.next_token)
            self.cells[-1][message.uid] += "*"

    def _launch(self, batch: Batch) -> InFlight:
        mark = "P" if batch.is_prefill else "d"
        self.cells.append({req.uid: f"{mark}{req.extend_len}" for req in batch.reqs})
        return super()._launch(batch)


def timeline(budget: int) -> list[list[int]]:
    scheduler = Watched(
        SchedulerConfig(
            model_path=model_folder(),
            tp_info=DistributedInfo(0, 1),
            dtype=torch.float32,
            device=torch.device("cpu"),
            max_running_req=2,
            num_page_override=128,
            max_seq_len_override=64,
            cache_type="naive",
            overlap=False,
            max_extend_tokens=budget,
        )
    )
    scheduler.step()
    while scheduler.has_work:
        scheduler.step()
    computed = [sum(int(c.strip("Pd*")) for c in step.values()) for step in scheduler.cells]
    print(f"预算 {budget} 个 token:")
    for uid, name in enumerate("AB"):
        print(f"  {name} " + " ".join(f"{step.get(uid, '.'):<4}" for step in scheduler.cells).rstrip())
    print(f"  最大的一步算 {max(computed)} 个 token，共 {len(computed)} 步")
    scheduler.shutdown()
    return scheduler.tokens


def main() -> None:
    print("每列一步：P 预填充，d 解码，数字是算的 token 数，* 是说出一个 token")
    whole, chunked = timeline(64), timeline(8)
    print(f"两次说出的 token 相同: {whole == chunked}")


if __name__ == "__main__":
    main()
