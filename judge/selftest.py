"""Which isolation tier this machine has, found out by attacking it: every tier is tried with programs that do what a
hostile submission would, and is offered only if none of them gets anywhere.

`python -m judge.selftest` prints the table and what to change; `judge.Judge` runs the same at its start.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.core import frames
from judge.sandbox.client import Scene, Zygote
from judge.sandbox.gpu import DeviceMemory, GpuStage
from judge.sandbox.local import LocalZygote
from judge.sandbox.process import ChildLimits, Ending, SandboxError

ISOLATING = ("strong", "medium")
LIMITS = ChildLimits(case_ms=2000, total_ms=6000, memory_mb=128, output_kb=16, reply_kb=64)

# Each gives a list of what it got hold of; an empty list means that the doors held. `bait` has a secret file, a folder
# to write into, a port that listens, and the pid of a process of ours.
ATTACKS: dict[str, str] = {
    "read files": """
import os
def attack(bait):
    got = []
    paths = ["/proc/self/environ", "/proc/1/environ", f"/proc/{bait['pid']}/maps", "/etc/passwd"]
    for path in (*paths, bait["file"], bait["course"], "/proc/self/root" + bait["file"]):
        try:
            with open(path, "rb") as file:
                got.append(path if file.read(1) else path + " (empty)")
        except OSError:
            pass
    try:
        got += [bait["folder"]] if os.listdir(bait["folder"]) else []
    except OSError:
        pass
    return got
""",
    "write files": """
import os
def attack(bait):
    got = []
    for folder in (bait["folder"], "/tmp/..", "/", "/etc", "/usr/lib", "/dev/shm", "/var/tmp", os.path.dirname(os.__file__)):
        try:
            with open(os.path.join(folder, "planted"), "w") as file:
                file.write("x")
            got.append(folder)
            os.unlink(os.path.join(folder, "planted"))
        except OSError:
            pass
    make = {
        "planted.s": lambda name: os.symlink(bait["file"], name),
        "planted.f": os.mkfifo,
        "planted.h": lambda name: os.link(bait["file"], name),
    }
    for name, call in make.items():
        try:
            call(name)
            got.append(name)
            os.unlink(name)
        except OSError:
            pass
    return got
""",
    "network": """
import socket
def attack(bait):
    got = []
    for kind, address in ((socket.AF_INET, ("127.0.0.1", bait["port"])), (socket.AF_UNIX, "\\0" + bait["abstract"])):
        try:
            with socket.socket(kind) as link:
                link.connect(address)
                got.append(str(address))
        except OSError:
            pass
    return got
""",
    "other processes": """
import ctypes, os, signal
def attack(bait):
    got = []
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in (bait["pid"], os.getppid(), -1):
        if pid in (0, os.getpid()):
            continue
        try:
            os.kill(pid, 0)
            got.append(f"kill {pid}")
        except OSError:
            pass
        # PTRACE_SEIZE: unlike PTRACE_ATTACH it does not stop the process, where it works.
        if pid > 1 and libc.ptrace(0x4206, pid, None, None) == 0:
            got.append(f"ptrace {pid}")
    x86 = os.uname().machine == "x86_64"  # numbers mean something else elsewhere
    for name, number in (("process_vm_readv", 310), ("pidfd_open", 434)) if x86 else ():
        if libc.syscall(number, bait["pid"], 0, 0, 0, 0, 0) >= 0:
            got.append(name)
    return got
""",
    "new processes": """
import ctypes, os, threading
def attack(bait):
    got = []
    try:
        if os.fork() == 0:
            os._exit(0)
        got.append("fork")
    except OSError:
        pass
    for path in ("/bin/true", "/usr/bin/true"):
        if os.path.exists(path):
            try:
                os.execv(path, ["true"])
            except OSError:
                pass
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (17, 0x10000000 | 17) if os.uname().machine == "x86_64" else ():
        if libc.syscall(56, flags, 0, 0, 0, 0) > 0:
            got.append(f"clone {flags:#x}")
    try:
        threading.Thread(target=print).start()
        got.append("thread")
    except RuntimeError:
        pass
    return got
""",
    "rights": """
import ctypes, os, resource
def attack(bait):
    got = []
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
        try:
            resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            got.append(f"limit {kind}")
        except (OSError, ValueError):
            pass
    libc = ctypes.CDLL(None, use_errno=True)
    calls = (
        ("unshare", 272, (0x10000000,)), ("mount", 165, (b"none", b"/", b"tmpfs", 0, 0)), ("setuid", 105, (0,)),
        ("chroot", 161, (b".",)), ("bpf", 321, (0, 0, 0)), ("io_uring_setup", 425, (1, 0)), ("keyctl", 250, (0, -3, 1)),
        ("memfd_create", 319, (b"x", 0)), ("userfaultfd", 323, (0,)), ("perf_event_open", 298, (0, 0, -1, -1, 0)),
    )
    for name, number, args in calls if os.uname().machine == "x86_64" else ():
        if libc.syscall(number, *args) >= 0:
            got.append(name)
    return got
""",
    "memory": """
def attack(bait):
    kept = []
    try:
        for _ in range(64):
            kept.append(bytearray(16 << 20))
    except MemoryError:
        return []
    return ["1 GB of memory"]
""",
    "what is left lying about": """
import os
def attack(bait):
    got = [name for name in os.environ if name not in ("LC_CTYPE",)]
    for fd in range(3, 256):
        try:
            os.fstat(fd)
        except OSError:
            continue
        if fd > 4:
            try:
                got.append(f"fd {fd}: " + os.readlink(f"/proc/self/fd/{fd}"))
            except OSError:
                got.append(f"fd {fd}")
    return got
""",
}


@dataclass(frozen=True)
class Finding:
    """How a tier stood up to one attack. `got`: what the attack got hold of; empty if the doors held."""

    attack: str
    got: tuple[str, ...]


@dataclass(frozen=True)
class TierReport:
    """What a tier is worth here. `error`: why its children cannot even be started, or ""."""

    tier: str
    error: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not self.error and not any(f.got for f in self.findings)

    @property
    def reason(self) -> str:
        """Why it is not ok, in one line."""
        if self.error:
            return self.error
        return "; ".join(f"{f.attack}: {', '.join(f.got)}" for f in self.findings if f.got)


# What to change where a tier does not work.
ADVICE = {
    "strong": {
        "zh": "内核要允许普通用户建用户命名空间：sysctl kernel.unprivileged_userns_clone=1（Debian）、"
        "kernel.apparmor_restrict_unprivileged_userns=0（Ubuntu）、user.max_user_namespaces 大于 0；Linux 5.12 以上。"
        "在容器里：security_opt 用仓库里的 docker/seccomp-strong.json，并加 apparmor=unconfined",
        "en": "the kernel has to let users make user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian), "
        "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces above 0; Linux 5.12 or later. "
        "In a container: security_opt with docker/seccomp-strong.json of this repository, and apparmor=unconfined",
    },
    "medium": {
        "zh": "需要带 Landlock 的内核（5.13 以上，启动参数 lsm= 里有 landlock），信号隔离需要 6.12 以上；"
        "Docker 需要默认 seccomp 配置里放行 landlock_* 的版本",
        "en": "needs a kernel with Landlock (5.13 or later, landlock in the boot parameter lsm=), 6.12 or later for signal "
        "scoping; a Docker whose default seccomp profile lets landlock_* through",
    },
    "gpu": {
        "zh": "需要 NVIDIA 驱动和看得见 GPU 的 torch；以 root 启动时判题进程会换成一个没人用的 uid；最好有 Landlock",
        "en": "needs the NVIDIA driver and a torch that sees the GPU; started as root, the submission gets an unused uid; "
        "Landlock is wanted",
    },
    "local": {
        "zh": "只限制时间和内存，不隔离：只有终端命令和本机单用户的网站可以用",
        "en": "limits time and memory and isolates nothing: only the terminal command and a single-user site may use it",
    },
}


@contextmanager
def bait() -> Iterator[dict[str, Any]]:
    """Things that an attack would like to get hold of."""
    with tempfile.TemporaryDirectory(prefix="judge-bait-") as folder, socket.socket() as port:
        secret = Path(folder) / "secret"
        secret.write_text("secret")
        secret.chmod(0o644)
        Path(folder).chmod(0o777)
        port.bind(("127.0.0.1", 0))
        port.listen(8)
        abstract = f"judge-bait-{os.getpid()}"
        things = {
            "file": str(secret),
            "folder": folder,
            # Answers lie beside it: where the course is installed below a folder of libraries, submissions would see them.
            "course": str(Path(__file__).resolve()),
            "port": port.getsockname()[1],
            "pid": os.getpid(),
            "abstract": abstract,
        }
        if sys.platform == "linux":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind("\0" + abstract)
                listener.listen(8)
                yield things
        else:
            yield things


def try_tier(zygote: Zygote | LocalZygote, tier: str) -> TierReport:
    """Attack one tier."""
    try:
        stage = zygote.stage(Scene(), tier)
    except SandboxError as error:
        return TierReport(tier, str(error), ())
    findings = []
    try:
        with bait() as things:
            for name, source in ATTACKS.items():
                child = stage.spawn(LIMITS)
                try:
                    findings.append(Finding(name, _attack(child, source, things)))
                finally:
                    child.close()
    except (SandboxError, OSError) as error:
        return TierReport(tier, str(error), tuple(findings))
    finally:
        stage.close()
    return TierReport(tier, "", tuple(findings))


# Of tier `gpu`: CUDA has threads of its own, and its /proc/self is there (the environment is empty by then).
GPU_HAS = frozenset({"thread", "/proc/self/environ (empty)"})
# What CUDA opens in the submission's own process before the doors shut. Nothing is inherited: `Popen` closes it, and a
# socket of the driver's can neither send nor receive behind the doors.
CUDA_OPENS = re.compile(r"fd \d+: (/dev/nvidia|anon_inode:\[event|pipe:|socket:)")


def try_gpu(stage: GpuStage) -> TierReport:
    """Attack tier `gpu`: the same attacks, less what CUDA cannot do without. `memory` is not limited by address space
    there but watched, so that its attack is killed."""
    findings = []
    try:
        with bait() as things:
            for name, source in ATTACKS.items():
                child = stage.spawn(LIMITS)
                try:
                    got = _attack(child, source, things)
                finally:
                    child.close()
                findings.append(Finding(name, _beyond_cuda(got)))
    except (SandboxError, OSError) as error:
        return TierReport("gpu", str(error), tuple(findings))
    finally:
        stage.close()
    return TierReport("gpu", "", tuple(findings))


def _beyond_cuda(got: tuple[str, ...]) -> tuple[str, ...]:
    """What a process with CUDA has no business to have."""
    return tuple(g for g in got if g not in GPU_HAS and not CUDA_OPENS.match(g))


def _attack(child: Any, source: str, things: dict[str, Any]) -> tuple[str, ...]:
    load = {
        "source": source,
        "entry": "attack",
        "arity": 1,
        "signature": "attack(bait)",
        "kind": "function",
        "target": None,
    }
    for frame in (frames.encode("load", load), frames.encode("case", {"inputs": {"bait": things}})):
        answer = child.exchange(frame)
        if isinstance(answer, Ending):
            # Killed while trying is a door that held. No attack ends by itself, unless another program took its place.
            return ("another program was executed",) if answer.message.code == "ended_early" else ()
    reply = frames.decode(answer.data)
    if reply.kind == "outputs" and isinstance(reply.body, list):
        return tuple(str(x) for x in reply.body)
    # An attack that raises has not been made: that proves nothing.
    return (f"an answer of kind {reply.kind}: {reply.body}",)


def _show(report: TierReport, lang: str) -> None:
    print(f"{report.tier:<8}{'ok' if report.ok else 'no'}")
    for finding in report.findings:
        got = f": {', '.join(finding.got)}" if finding.got else ""
        print(f"        {'✗' if finding.got else '✓'} {finding.attack}{got}")
    if not report.ok:
        print(f"        {report.reason}")
        print(f"        → {ADVICE[report.tier][lang]}")


def main() -> None:
    """Print the table. Exit status 0 if some isolating tier works; with --gpu, if tier `gpu` does."""
    lang = "zh" if os.environ.get("LC_ALL", os.environ.get("LANG", "")).lower().startswith("zh") else "en"
    if "--gpu" in sys.argv:
        from judge import kernels

        print(kernels.report(lang))
        try:
            report = try_gpu(GpuStage(Scene(), memory=DeviceMemory()))
        except SandboxError as error:
            report = TierReport("gpu", str(error), ())
        _show(report, lang)
        sys.exit(0 if report.ok else 1)
    if sys.platform != "linux":
        print(f"local   {ADVICE['local'][lang]}")
        sys.exit(1)
    zygote = Zygote("selftest")
    try:
        zygote.wait_ready()
        reports = [try_tier(zygote, tier) for tier in ISOLATING]
    finally:
        zygote.close()
    for report in reports:
        _show(report, lang)
    print(f"local   {ADVICE['local'][lang]}")
    sys.exit(0 if any(r.ok for r in reports) else 1)


if __name__ == "__main__":
    main()
