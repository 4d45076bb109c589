"""Chapter 14: two ranks, each in its own process, see the same messages at the same step, though only the first
one is connected to the outside. The second joins late, and still misses nothing.

Nothing here needs a model: the ranks have the scheduler's sockets and no engine.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from minisgl.core import SamplingParams  # noqa: E402
from minisgl.message.backend import AbortBackendMsg, BatchBackendMsg, ExitMsg, UserMsg  # noqa: E402
from minisgl.message.tokenizer import TOKENIZER_TYPES, BatchTokenizerMsg  # noqa: E402
from minisgl.message.utils import each, pack, reader  # noqa: E402
from minisgl.utils.mp import ZmqPullQueue, ZmqPushQueue  # noqa: E402

WAIT_S = 60.0
LATE_S = 0.5
IDLE_S = 1.0
SPINNING_S = IDLE_S / 2  # of processor time; who sleeps uses some milliseconds
RANK = """
import json, sys, time
import torch
from minisgl.distributed.info import DistributedInfo
from minisgl.message.backend import ExitMsg, UserMsg
from minisgl.message.tokenizer import DetokenizeMsg
from minisgl.scheduler.config import SchedulerConfig
from minisgl.scheduler.io import SchedulerIOMixin

rank, folder = int(sys.argv[1]), sys.argv[2]
print("here", flush=True)
sys.stdin.readline()
config = SchedulerConfig("", DistributedInfo(rank, 2), torch.float32, socket_folder=folder)
started = time.monotonic()
io = SchedulerIOMixin(config)
print(json.dumps({"waited": time.monotonic() - started > 0.1}), flush=True)
working, used = False, time.process_time()
while True:
    messages = io.receive_msg(blocking=not working)
    if messages:
        print(json.dumps([f"{type(one).__name__}({one.uid})" if hasattr(one, "uid") else type(one).__name__
                          for one in messages]), flush=True)
    for one in messages:
        if isinstance(one, UserMsg):
            io.send_result([DetokenizeMsg(one.uid, int(one.input_ids.sum()), finished=True, finish_reason="length")])
    if any(isinstance(one, ExitMsg) for one in messages):
        break
print(json.dumps({"cpu": time.process_time() - used}), flush=True)
io.close_io()
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="minisgl-") as folder:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", RANK, str(rank), folder],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        for rank in ranks:
            assert rank.stdout is not None
            assert rank.stdout.readline() == "here\n", "a rank has not started"
        outlet: ZmqPushQueue[object] = ZmqPushQueue(f"ipc://{folder}/backend", False, pack)
        replies: ZmqPullQueue[object] = ZmqPullQueue(
            f"ipc://{folder}/tokenizer0", True, reader(TOKENIZER_TYPES)
        )

        def ask(uid: int, prompt: list[int]) -> UserMsg:
            return UserMsg(uid, torch.tensor(prompt, dtype=torch.int32), SamplingParams())

        outlet.put(ask(0, [1, 2, 3]))  # before anybody listens
        for rank in ranks:
            assert rank.stdin is not None
            rank.stdin.write("go\n")
            rank.stdin.flush()
            time.sleep(LATE_S)
        told = [replies.get(WAIT_S)]
        outlet.put(BatchBackendMsg([ask(1, [4]), ask(2, [5, 6])]))
        told += each(replies.get(WAIT_S), BatchTokenizerMsg)
        told += each(replies.get(WAIT_S), BatchTokenizerMsg)
        time.sleep(IDLE_S)
        outlet.put(BatchBackendMsg([AbortBackendMsg(2), ask(3, [7]), ExitMsg()]))
        told.append(replies.get(WAIT_S))
        seen = [
            [json.loads(line) for line in rank.communicate(timeout=WAIT_S)[0].splitlines()] for rank in ranks
        ]

    for rank, (start, *steps, end) in enumerate(seen):
        late = "等到对方开始听才往下走" if start["waited"] else "连上就走"
        idle = "没有空转" if end["cpu"] < SPINNING_S else "空转了"
        print(f"rank {rank}（{late}，等消息时{idle}）看到:")
        for step in steps:
            print(f"  {step}")
    print(f"两个 rank 看到的一样: {seen[0][1:-1] == seen[1][1:-1]}")
    print(f"结果只由 rank 0 送出一次: {[(message.uid, message.next_token) for message in told]}")


if __name__ == "__main__":
    main()
