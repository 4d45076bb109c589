"""Tier `gpu`: the doors, on a machine without a GPU (the same process, confined the same way, that never touches one);
with one, device memory too."""

from __future__ import annotations

import threading
import time

import pytest

from judge.core import frames
from judge.core.status import Status
from judge.sandbox.client import Scene
from judge.sandbox.gpu import DeviceMemory, GpuStage
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


@pytest.mark.parametrize(
    "body",
    [
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
    ],
)
def test_what_a_submission_may_not_do(stage, body):
    told = answer(stage, f"def f():\n    {body}\n    return 'done'\n")
    assert isinstance(told, dict), told
    assert told["type"] in (
        "OSError",
        "PermissionError",
        "FileNotFoundError",
        "AssertionError",
        "ValueError",
    ), told


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
def test_a_kernel_runs_behind_the_doors():
    stage = GpuStage(Scene(), memory=DeviceMemory())
    try:
        start = time.monotonic()
        source = "import torch\n\ndef f():\n    x = torch.ones(512, 512, device='cuda')\n    return float((x @ x).sum())\n"
        assert answer(stage, source) == 512.0**3
        assert time.monotonic() - start < 120
    finally:
        stage.close()
