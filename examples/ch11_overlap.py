"""Chapter 11: the next batch is launched before the current one's tokens are known.

The same two requests twice, without overlap and with it. Each line is one turn of the loop: what was launched and
what landed. With overlap a batch lands one turn later, so a request that ended with a stop token has already
been launched once more; the token of that extra step is dropped, and its row and pages are given back only when
the batch has landed. The tokens are the same.
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

PROMPTS = [[40, 71, 82, 303, 9], [17, 256, 301]]
NEW_TOKENS = [8, 5]


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("qwen3"))


class Watched(Scheduler):
    """Numbers its batches, and notes when each is launched and when it lands."""

    def __init__(self, config: SchedulerConfig, stop: list[int]) -> None:
        super().__init__(config)
        self.inbox: list[BaseBackendMsg] = [
            UserMsg(
                uid,
                torch.tensor(prompt, dtype=torch.int32),
                SamplingParams(
                    max_tokens=NEW_TOKENS[uid], ignore_eos=True, stop_token_ids=stop if uid == 0 else ()
                ),
            )
            for uid, prompt in enumerate(PROMPTS)
        ]
        self.tokens: dict[int, list[int]] = {0: [], 1: []}
        self.batches: list[
            Batch
        ] = []  # all of them are kept: one that is gone would lend its identity to a later one
        self.launched, self.landed = "", ""

    def receive_msg(self, blocking: bool) -> list[BaseBackendMsg]:
        messages, self.inbox = self.inbox, []
        return messages

    def send_result(self, reply: list[DetokenizeMsg]) -> None:
        for message in reply:
            assert message.next_token is not None
            self.tokens[message.uid].append(message.next_token)
            self.landed += f" {'AB'[message.uid]}→{message.next_token}"
            self.landed += f"（{message.finish_reason}）" if message.finished else ""

    def _launch(self, batch: Batch) -> InFlight:
        self.batches.append(batch)
        self.launched = (
            f"#{len(self.batches)} {batch.phase:<7} {''.join('AB'[req.uid] for req in batch.reqs)}"
        )
        return super()._launch(batch)

    def _land(self, flight: InFlight) -> None:
        number = next(n for n, batch in enumerate(self.batches, 1) if batch is flight.batch)
        self.landed += f" #{number}"
        super()._land(flight)


def run(overlap: bool, stop: list[int], show: bool = True) -> dict[int, list[int]]:
    scheduler = Watched(
        SchedulerConfig(
            model_path=model_folder(),
            tp_info=DistributedInfo(0, 1),
            dtype=torch.float32,
            device=torch.device("cpu"),
            max_running_req=2,
            num_page_override=64,
            max_seq_len_override=32,
            cache_type="naive",
            overlap=overlap,
            check_pages=True,
        ),
        stop,
    )
    if show:
        print("有重叠:" if overlap else "没有重叠:")
        print("  轮  发出            收回                        空闲行  空闲页")
    turn = 0
    while turn == 0 or scheduler.has_work:
        turn += 1
        scheduler.launched, scheduler.landed = "-", ""
        scheduler.step()
        if show:
            print(
                f"  {turn:>2}  {scheduler.launched:<15}{scheduler.landed or ' -':<28}"
                f"{scheduler.table_manager.available_size:>6}{scheduler.cache_manager.free_pages:>8}"
            )
    scheduler.shutdown()
    return scheduler.tokens


def main() -> None:
    # A stop token for A, so that it ends where nobody could know before: the 4th token that it says.
    stop = run(False, [], show=False)[0][3:4]
    without, with_overlap = run(False, stop), run(True, stop)
    print(f"两次说出的 token 相同: {without == with_overlap}")


if __name__ == "__main__":
    main()
