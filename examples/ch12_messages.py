"""Chapter 12: a message becomes bytes, crosses a process border and comes back as the same message.

Nothing here needs a model. The other process is started by this script and echoes whatever it is sent.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from minisgl.core import SamplingParams  # noqa: E402
from minisgl.message.backend import BACKEND_TYPES, AbortBackendMsg, BatchBackendMsg, ExitMsg, UserMsg  # noqa: E402
from minisgl.message.frontend import FRONTEND_TYPES, UserReply, WorkerMsg  # noqa: E402
from minisgl.message.tokenizer import TOKENIZER_TYPES, DetokenizeMsg, TokenizeMsg  # noqa: E402
from minisgl.message.utils import each, pack, reader, to_plain, unpack  # noqa: E402
from minisgl.utils.mp import ZmqPullQueue, ZmqPushQueue  # noqa: E402

WAIT_S = 60.0
ECHO = """
import sys
from minisgl.message.backend import BACKEND_TYPES, ExitMsg
from minisgl.message.frontend import WorkerMsg
from minisgl.message.utils import pack, reader
from minisgl.utils.mp import ZmqPullQueue, ZmqPushQueue

inlet = ZmqPullQueue(sys.argv[1], True, reader(BACKEND_TYPES))
outlet = ZmqPushQueue(sys.argv[2], False, pack)
outlet.put(WorkerMsg("echo"))  # ready: the inlet is there
while not isinstance(message := inlet.get(60.0), ExitMsg):
    outlet.put(message)
"""
MESSAGES = [
    (TokenizeMsg(7, "写一首诗", SamplingParams(temperature=0.7, stop=("。",))), TOKENIZER_TYPES),
    (UserMsg(7, torch.arange(1000, dtype=torch.int32), SamplingParams()), BACKEND_TYPES),
    (DetokenizeMsg(7, 4242, finished=False), TOKENIZER_TYPES),
    (UserReply(7, "春", finished=False, completion_tokens=2), FRONTEND_TYPES),
    (AbortBackendMsg(7), BACKEND_TYPES),
]


def show_sizes() -> None:
    print("消息               线上字节")
    for message, types in MESSAGES:
        frame = pack(message)
        assert to_plain(unpack(frame, types)) == to_plain(message)
        print(f"{type(message).__name__:<16}{len(frame):>8}")


def show_refusals() -> None:
    frame = pack(MESSAGES[0][0])
    for what, bad, types in [
        ("不在名单里的类型", frame, BACKEND_TYPES),
        ("被截断的帧", frame[:-3], TOKENIZER_TYPES),
    ]:
        try:
            unpack(bad, types)
        except ValueError as error:
            print(f"{what}: {textwrap.shorten(str(error), 90)}")


def show_round_trip() -> None:
    with tempfile.TemporaryDirectory(prefix="minisgl-") as folder:
        there, back = f"ipc://{folder}/there", f"ipc://{folder}/back"
        inlet: ZmqPullQueue[object] = ZmqPullQueue(back, True, reader((*BACKEND_TYPES, WorkerMsg)))
        with subprocess.Popen([sys.executable, "-c", ECHO, there, back], env=_environment()) as echo:
            ready = inlet.get(WAIT_S)
            print(f"就绪: {ready}")
            outlet: ZmqPushQueue[object] = ZmqPushQueue(there, False, pack)
            prompt = torch.tensor([785, 6722, 315], dtype=torch.int32)
            outlet.put(BatchBackendMsg([UserMsg(1, prompt, SamplingParams()), AbortBackendMsg(1)]))
            user, abort = each(inlet.get(WAIT_S), BatchBackendMsg)
            print(f"往返: {type(user).__name__} {user.input_ids.tolist()} {user.input_ids.dtype}, {abort}")
            outlet.put(ExitMsg())
            print(f"对方退出: {echo.wait(WAIT_S)}")
            try:
                inlet.get(0.2)
            except TimeoutError:
                print("再等就超时: 每个等待都有期限")


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


if __name__ == "__main__":
    show_sizes()
    show_refusals()
    show_round_trip()
