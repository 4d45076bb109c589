"""What can be judged on this machine: each line found out by trying it, with what to do where it fails."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from judge.sandbox.client import probe


@dataclass(frozen=True)
class Line:
    """One finding. `broken`: nothing can be judged without it; `missing`: something more would be possible with it."""

    name: str
    state: Literal["ok", "missing", "broken"]
    text: dict[str, str]


def report() -> Iterator[Line]:
    """All findings, the basic ones first."""
    version = platform.python_version()
    yield Line("Python", "ok", {"zh": version, "en": version})
    yield _package("torch", "broken", "make setup")
    yield _tier()
    yield from _gpu()


def _package(name: str, without: Literal["missing", "broken"], how: str) -> Line:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Line(name, without, {"zh": f"没有安装：{how}", "en": f"not installed: {how}"})
    return Line(name, "ok", {"zh": version, "en": version})


def _tier() -> Line:
    if sys.platform != "linux":
        text = {
            "zh": f"strong 需要 Linux，这里是 {sys.platform}：请在 Linux 虚拟机、WSL 2 或容器里判题",
            "en": f"strong needs Linux, this is {sys.platform}: judge in a Linux VM, WSL 2 or a container",
        }
        return Line("tier", "broken", text)
    problems = probe()
    if not problems:
        return Line("tier", "ok", {"zh": "strong（刚刚试过）", "en": "strong (tried just now)"})
    hint = {
        "zh": "检查 sysctl kernel.unprivileged_userns_clone、user.max_user_namespaces、"
        "kernel.apparmor_restrict_unprivileged_userns",
        "en": "look at sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces and "
        "kernel.apparmor_restrict_unprivileged_userns",
    }
    return Line("tier", "broken", {lang: f"{'; '.join(problems)} — {hint[lang]}" for lang in hint})


def _gpu() -> Iterator[Line]:
    try:
        import torch
    except ImportError:
        return
    if not torch.cuda.is_available():
        text = {
            "zh": "没有；题目用假 kernel（CPU）判，和网站一样",
            "en": "none; problems are judged with the fake kernels on the CPU, as on the site",
        }
        yield Line("GPU", "missing", text)
        return
    name = torch.cuda.get_device_name()
    yield Line("GPU", "ok", {"zh": name, "en": name})
    yield _package("flashinfer-python", "missing", "pip install flashinfer-python==0.7.2.post1")
    yield _package("sglang-kernel", "missing", "pip install sglang-kernel")
