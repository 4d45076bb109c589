"""Tier `gpu`: the doors, on a machine without a GPU (the same process, confined the same way, that never touches one);
with one, device memory too."""

from __future__ import annotations

import errno
import os
import threading
import time

import pytest

from judge.core import frames
from judge.core.status import Status
from judge.sandbox.client import Scene
from judge.sandbox.gpu import DeviceMemory, GpuStage
from judge.sandbox.local import MOST_REPLIES, LocalChild, LocalStage
from judge.sandbox.process import ChildLimits, Ending, SandboxError
from judge.selftest import try_gpu

LIMITS = ChildLimits(case_ms=2000, total_ms=10_000, memory_mb=128, output_kb=16, reply_kb=64)


def load(source: str) -> bytes:
    body = {
        "source": source,
        "entry": "f",
        "arity": 0,
        "signature": "f()",
        "kind": "function",
        "target": None,
    }
    return frames.encode("load", body)


CASE = frames.encode("case", {"inputs": {}})


@pytest.fixture
def stage():
    stage = GpuStage(Scene())
    yield stage
    stage.close()


def answer(stage: GpuStage, source: str) -> object:
    child = stage.spawn(LIMITS)
    try:
        loaded = child.exchange(load(source))
        if isinstance(loaded, Ending):
            return loaded
        reply = child.exchange(CASE)
        return reply if isinstance(reply, Ending) else frames.decode(reply.data).body
    finally:
        child.end()


def test_the_doors_stand_up_to_every_attack():
    report = try_gpu(GpuStage(Scene()))
    assert report.ok, report.reason
    assert len(report.findings) >= 7


def test_no_descriptor_of_the_judge_is_inherited(tmp_path):
    with (tmp_path / "kept.txt").open("w") as kept:
        os.set_inheritable(kept.fileno(), True)
        stage = GpuStage(Scene())
        try:
            source = """
import os

def f():
    found = []
    for fd in range(256):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            continue
    assert found
    return [name for name in found if "kept" in name]
"""
            assert answer(stage, source) == []
        finally:
            stage.close()


# By number, since a libseccomp may be too old to know the name: setxattrat, removexattrat, open_tree_attr, file_setattr;
# and mincore, fadvise64, readahead, and preadv2 with RWF_NOWAIT of x86-64.
BY_NUMBER = [
    *((number, -1, 0, 0, 0, 0, 0) for number in (463, 466, 467, 469)),
    *((number, 0, 0, 0, 4) for number in (27, 221, 187) if os.uname().machine == "x86_64"),
    *((327, -1, 0, 0, 0, 0, 8) for _ in range(1) if os.uname().machine == "x86_64"),
]
# Each alone in a program would be a process that imports torch.
FORBIDDEN = [
    "import socket; socket.socket()",
    "import socket; socket.socketpair()",
    "import os; os.fork()",
    "import os; os.posix_spawn('/bin/true', ['true'], {})",
    "import os; os.setuid(0)",
    "import os; os.chmod('/usr', 0o777)",
    "import os; os.memfd_create('x')",
    "import resource; resource.setrlimit(resource.RLIMIT_CPU, (9, 9))",
    "open('/usr/lib/planted', 'w')",
    "open('/dev/shm/planted', 'w')",
    "open('/root/.bashrc')",
    "import ctypes; n = ctypes.CDLL(None, use_errno=True); assert n.ptrace(0, 0, 0, 0) == 0, 'no'",
    "import os, time; time.clock_gettime((~os.getppid() << 3) | 2)",
    *(
        f"import ctypes; n = ctypes.CDLL(None, use_errno=True); n.syscall{args}; assert ctypes.get_errno() != 1, 'no'"
        for args in BY_NUMBER
    ),
]


def test_what_a_submission_may_not_do(stage):
    source = f"""
def f():
    told = []
    for body in {FORBIDDEN!r}:
        try:
            exec(body, {{}})
            told.append("nothing")
        except BaseException as error:
            told.append(next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"))
    return told
"""
    told = answer(stage, source)
    assert isinstance(told, list), told
    raised = dict(zip(FORBIDDEN, told, strict=True))
    may = {"OSError", "PermissionError", "FileNotFoundError", "AssertionError", "ValueError"}
    assert {body: name for body, name in raised.items() if name not in may} == {}


def test_threads_and_plain_work_are_allowed(stage):
    source = """
import os, threading
import torch

def f():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(int(torch.ones(3).sum())))
    thread.start()
    thread.join()
    return [seen, dict(os.environ)]
"""
    assert answer(stage, source) == [[3], {}]


def test_memory_and_time_have_limits(stage):
    source = "def f():\n    kept = []\n    while True:\n        kept.append(bytearray(b'x' * (8 << 20)))\n"
    ending = answer(stage, source)
    assert isinstance(ending, Ending)
    assert ending.status is Status.MEMORY_LIMIT
    ending = answer(stage, "def f():\n    while True:\n        pass\n")
    assert isinstance(ending, Ending)
    assert ending.status is Status.TIME_LIMIT


def test_one_submission_at_a_time_has_the_gpu(stage):
    order = []

    def run(name: str) -> None:
        child = stage.spawn(LIMITS)
        try:
            child.exchange(load("import time\n\ndef f():\n    time.sleep(0.3)\n"))
            order.append(f"{name} in")
            child.exchange(CASE)
            order.append(f"{name} out")
        finally:
            child.end()

    threads = [threading.Thread(target=run, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    first, second = order[0][0], order[2][0]
    assert order == [f"{first} in", f"{first} out", f"{second} in", f"{second} out"]


def test_a_machine_without_a_driver_is_told(stage):
    try:
        memory = DeviceMemory()
    except SandboxError as error:
        assert "NVIDIA" in str(error)  # noqa: PT017
    else:
        assert memory.used_mb() > 0


cuda = pytest.mark.skipif("not __import__('torch').cuda.is_available()", reason="needs a GPU")


@cuda
def test_what_the_program_before_left_in_device_memory_is_gone():
    stage = GpuStage(Scene(), memory=DeviceMemory())
    try:
        fill = """
import torch

def f():
    torch.full((4 << 30,), 77, dtype=torch.uint8, device='cuda')
    torch.cuda.synchronize()
"""
        assert answer(stage, fill) is None
        look = """
import torch

def f():
    seen = 0
    for _ in range(4):
        x = torch.empty(2 << 30, dtype=torch.uint8, device='cuda')
        seen += int((x == 77).any())
    return seen
"""
        assert answer(stage, look) == 0
    finally:
        stage.close()


@cuda
def test_device_memory_has_a_limit_in_torch_and_beside_it():
    stage = GpuStage(Scene(), device_mb=2048, memory=DeviceMemory())
    try:
        told = answer(
            stage, "import torch\n\ndef f():\n    torch.empty(4 << 30, dtype=torch.uint8, device='cuda')\n"
        )
        assert isinstance(told, dict)
        assert "out of memory" in told["text"].lower()
        beside = """
import ctypes, glob, time
import torch

def f():
    lib = ctypes.CDLL([line.split()[-1] for line in open('/proc/self/maps') if 'libcudart' in line][0])
    place = ctypes.c_void_p()
    code = lib.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(6 << 30))
    end = time.time() + 2
    while time.time() < end:
        pass
    return code
"""
        ending = answer(stage, beside)
        assert isinstance(ending, Ending), ending
        assert ending.message.code == "device_memory_limit"
    finally:
        stage.close()


@cuda
def test_the_doors_stand_up_to_every_attack_beside_cuda():
    report = try_gpu(GpuStage(Scene(), memory=DeviceMemory()))
    assert report.ok, report.reason


@cuda
def test_a_kernel_runs_behind_the_doors():
    stage = GpuStage(Scene(), memory=DeviceMemory())
    try:
        start = time.monotonic()
        source = "import torch\n\ndef f():\n    x = torch.ones(512, 512, device='cuda')\n    return float((x @ x).sum())\n"
        assert answer(stage, source) == 512.0**3
        assert time.monotonic() - start < 120
    finally:
        stage.close()


@pytest.fixture(params=["gpu", "local"])
def process_stage(request):
    """The two tiers whose submissions are processes of their own, which read and write when they like."""
    stage = GpuStage(Scene()) if request.param == "gpu" else LocalStage(Scene(), reuse=False)
    yield stage
    stage.close()


def load_one(child: LocalChild, source: str) -> None:
    loaded = child.exchange(load(source))
    assert not isinstance(loaded, Ending), loaded


REPLIES = """
import os
import time

from judge.core import frames


def replies():
    # the highest descriptor that takes a write
    for fd in range(63, 2, -1):
        try:
            os.write(fd, b"")
            return fd
        except OSError:
            continue
"""


class Hurried(ChildLimits):
    """The same with walls that are near: those of a problem are far, for busy machines, and a sleeper waits them out."""

    wall_ms = 2000
    total_wall_ms = 2500


SHORT = ChildLimits(case_ms=100, total_ms=400, memory_mb=128, output_kb=16, reply_kb=4096)
HURRIED = Hurried(case_ms=100, total_ms=400, memory_mb=128, output_kb=16, reply_kb=4096)


def test_a_program_that_does_not_read_is_ended_in_time(process_stage):
    """Its pipe is full: whoever writes waits."""
    child = process_stage.make(HURRIED)
    try:
        load_one(child, REPLIES + "os.write(replies(), frames.encode('loaded', None))\ntime.sleep(1000)\n")
        start = time.monotonic()
        ending = child.exchange(frames.encode("case", {"inputs": {"x": "y" * 65000, "z": "y" * 65000}}))
        assert isinstance(ending, Ending)
        assert ending.message.code == "wall_limit"
        assert time.monotonic() - start < HURRIED.wall_ms / 1000 + 5
    finally:
        child.end()


def test_a_program_that_sends_without_end_has_to_wait(process_stage):
    child = process_stage.make(SHORT)
    try:
        load_one(
            child,
            REPLIES + "\ndef f():\n    data = frames.encode('outputs', ['x' * 60000] * 16) * 4\n"
            "    while True:\n        os.write(replies(), data)\n",
        )
        assert not isinstance(child.exchange(CASE), Ending)
        time.sleep(0.5)
        assert child._replies.qsize() <= MOST_REPLIES
        ending = child.exchange(CASE)
        assert isinstance(ending, Ending)
        assert ending.message.code == "unsolicited_bytes"
    finally:
        child.end()


@pytest.mark.parametrize(
    ("body", "limits", "code"),
    [
        ("time.sleep(0.9)", HURRIED, "wall_limit"),
        ("while time.process_time() < f.end: pass", SHORT, "total_cpu_limit"),
    ],
)
def test_all_cases_together_have_limits_too(process_stage, body, limits, code):
    child = process_stage.make(limits)
    source = f"import time\n\ndef f():\n    f.end = time.process_time() + 0.08\n    {body}\n"
    try:
        load_one(child, source)
        for _ in range(8):
            ending = child.exchange(CASE)
            if isinstance(ending, Ending):
                break
        assert isinstance(ending, Ending)
        assert ending.message.code == code
    finally:
        child.end()


SYSCALLS = {
    "fchmodat2": (452, "-100, b'/', 0o777, 0"),
    "setxattr": (188, "b'/', b'user.planted', b'x', 1, 0"),
    "removexattr": (197, "b'/', b'user.planted'"),
    "mq_open": (240, "b'planted', 0o102, 0o600, None"),
    "semtimedop": (220, "0, None, 0, None"),
    "truncate": (76, "b'/nowhere', 0"),
    "mkdir": (83, "b'/dev/shm/planted', 0o700"),
    "flock": (73, "0, 2"),
    "sched_setattr": (314, "0, None, 0"),
    "inotify_init1": (294, "0"),
    "io_setup": (206, "1, None"),
    "cachestat": (451, "0, None, None, 0"),
    "sendto": (44, "0, b'x', 1, 0, None, 0"),
    "recvfrom": (45, "0, None, 0, 0, None, None"),
    "sendmsg": (46, "0, None, 0"),
    "recvmsg": (47, "0, None, 0"),
    "shutdown": (48, "0, 2"),
    "setsockopt": (54, "0, 1, 2, None, 0"),
    "recvmmsg": (299, "0, None, 0, 0, None"),
    "sendmmsg": (307, "0, None, 0, 0"),
    "prctl(PR_SET_DUMPABLE)": (157, "4, 1, 0, 0, 0"),
    "fcntl(F_SETOWN)": (72, "0, 8, 1"),
    "ioctl(FS_IOC_SETFLAGS)": (16, "0, 0x40086602, None"),
    "open(O_CREAT)": (2, "b'/dev/shm/planted', 0o102, 0o600"),
    "open(O_ACCMODE)": (2, "b'/dev/null', 3, 0"),
}


@pytest.mark.skipif("__import__('platform').machine() != 'x86_64'", reason="numbers of x86_64")
def test_what_outlives_a_run_is_refused_before_it_is_looked_at(stage):
    tries = "".join(f"    seen[{name!r}] = call({n}, {args})\n" for name, (n, args) in SYSCALLS.items())
    source = f"""
import ctypes

libc = ctypes.CDLL(None, use_errno=True)

def call(*args):
    return 0 if libc.syscall(*args) >= 0 else ctypes.get_errno()

def f():
    seen = {{}}
{tries}    return seen
"""
    assert answer(stage, source) == dict.fromkeys(SYSCALLS, errno.EPERM)
