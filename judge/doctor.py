"""What can be judged on this machine: each line found out by trying it, with what to do where it fails."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from judge import selftest
from judge.sandbox.client import Zygote


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
    yield from _tiers()
    yield from _gpu()


def _package(name: str, without: Literal["missing", "broken"], how: str) -> Line:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Line(name, without, {"zh": f"没有安装：{how}", "en": f"not installed: {how}"})
    return Line(name, "ok", {"zh": version, "en": version})


def _tiers() -> Iterator[Line]:
    reports = []
    if sys.platform == "linux":
        zygote = Zygote("doctor")
        try:
            reports = [selftest.try_tier(zygote, tier) for tier in selftest.ISOLATING]
        finally:
            zygote.close()
    for report in reports:
        if report.ok:
            text = {"zh": "挡住了所有攻击（刚刚试过）", "en": "stood up to every attack (tried just now)"}
            yield Line(report.tier, "ok", text)
        else:
            advice = selftest.ADVICE[report.tier]
            yield Line(report.tier, "missing", {lang: f"{report.reason} → {advice[lang]}" for lang in advice})
    if not any(r.ok for r in reports):
        yield Line("local", "ok", selftest.ADVICE["local"])


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
