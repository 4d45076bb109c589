"""Tier `gpu`: a submission with the real kernels, on the GPU of a runner. CUDA neither survives a fork nor lives without
/proc and device nodes, so this is a fresh process for each submission; a warm spare hides the seconds that torch takes.

What holds: an unused uid where the runner is root, a deny-list of system calls (no sockets, no processes, no tracing, no
namespaces), Landlock where there is any (nothing may be written; /proc, /sys and the GPU's nodes are seen), limits of
time, memory and device memory, and device memory that is zeroed before a submission sees it. One submission at a time has
the GPU: `GpuStage` takes turns.

The process side is `gpu_child.py`.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping

from judge.core.status import Status
from judge.sandbox.client import Scene
from judge.sandbox.local import LocalChild, LocalStage
from judge.sandbox.process import ChildLimits, Ending, SandboxError, ending, memory_of

SCRUB_DEADLINE_S = 60.0
UID = 60_999  # below those of tier `strong`; one is enough, since one has the GPU at a time


class DeviceMemory:
    """How much of a GPU's memory is in use, from the driver's library, without a CUDA context of our own."""

    def __init__(self, index: int = 0) -> None:
        """Raises SandboxError where there is no NVIDIA driver."""
        try:
            self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            raise SandboxError(f"no NVIDIA driver here: {error}") from error
        self._handle = ctypes.c_void_p()
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(self._handle))

    def _call(self, name: str, *args: object) -> None:
        code = getattr(self._nvml, name)(*args)
        if code:
            raise SandboxError(f"{name} failed with {code}")

    def used_mb(self) -> float:
        """Megabytes in use by everybody."""
        info = (ctypes.c_ulonglong * 3)()  # total, free, used
        self._call("nvmlDeviceGetMemoryInfo", self._handle, ctypes.byref(info))
        return info[2] / (1 << 20)


class GpuStage(LocalStage):
    """One version of a problem. Invariant: whoever holds `turn` has the GPU."""

    early_spare = False  # its CUDA context would be counted as memory of the program that runs

    def __init__(
        self,
        scene: Scene,
        device_mb: int = 16_384,
        *,
        memory: DeviceMemory | None = None,
        turn: threading.Lock | None = None,
        kernels: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`device_mb`: what a submission may have of the GPU's memory. `memory`: None for a process confined in the same
        way that never touches a GPU, which is how machines without one test the doors. `turn`: one for each GPU, shared
        by its stages. `kernels`: modules with compiled code, imported while that is still allowed; `env`: what these
        and CUDA want to find in the environment, which is empty when the submission comes."""
        super().__init__(scene, reuse=False)
        self.device_mb = device_mb
        self.memory = memory
        self.turn = turn or threading.Lock()
        self.kernels = kernels
        self.env = dict(env or {})

    def make(self, limits: ChildLimits) -> LocalChild:
        return GpuChild(self, limits)


class GpuChild(LocalChild):
    """One process. Invariant: it has the stage's `turn` from the first exchange until `end`."""

    program = "gpu_child.py"

    def __init__(self, stage: GpuStage, limits: ChildLimits) -> None:
        self._gpu = stage
        self._has_turn = False
        self._at_start_mb = 0.0
        self._bytes_at_start = 0
        super().__init__(stage, limits)

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self._gpu.env}

    def options(self) -> dict[str, object]:
        return {
            **super().options(),
            "cuda": self._gpu.memory is not None,
            "device_mb": self._gpu.device_mb,
            "kernels": self._gpu.kernels,
            "uid": UID if os.geteuid() == 0 else None,
        }

    def _wait_ready(self) -> None:
        """Wait for the process, then for the GPU; have its memory zeroed and the doors shut."""
        super()._wait_ready()
        if not self._gpu.turn.acquire(timeout=self.limits.total_wall_ms / 1000 + SCRUB_DEADLINE_S):
            raise SandboxError("the GPU did not become free")
        self._has_turn = True
        self._tell(b"\x01")
        if self._said(SCRUB_DEADLINE_S) is None:
            raise SandboxError(f"the process could not be confined: {self.printed()}")
        self.forget_output()
        self._at_start_mb = self._gpu.memory.used_mb() if self._gpu.memory else 0.0
        self._bytes_at_start = memory_of(self._process.pid)

    def _over_limit(self, before: float, cpu_limit_ms: int, end: float) -> Ending | None:
        over = super()._over_limit(before, cpu_limit_ms, end)
        if over is not None:
            return over
        # No RLIMIT_AS here: CUDA reserves address space by the terabyte.
        if memory_of(self._process.pid) - self._bytes_at_start > self.limits.memory_mb << 20:
            return ending(Status.MEMORY_LIMIT, "memory_limit", limit_mb=self.limits.memory_mb)
        memory = self._gpu.memory
        if memory is not None and memory.used_mb() - self._at_start_mb > self._gpu.device_mb:
            return ending(Status.MEMORY_LIMIT, "device_memory_limit", limit_mb=self._gpu.device_mb)
        return None

    def end(self) -> None:
        super().end()
        if self._has_turn:
            self._has_turn = False
            self._gpu.turn.release()
