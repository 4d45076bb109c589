"""Everything that the fakes export against the sources of the real packages: names, order, kinds and defaults.

The sources come from `tools/real_wheels.py` (see there); the packages are never imported. Without flashinfer's wheel
this is skipped on a laptop and fails in CI. sglang-kernel's wheel is too large to fetch: without it what was recorded
from it counts, and a name that wasn't recorded fails.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tools.real_wheels import PACKAGES, RECORDED, exported, sources
from tools.wheel_signatures import Missing, Sources, of_object, written

Read = Callable[[str, str], list[str]]


@cache
def wheel(package: str) -> Sources | None:
    return sources(package)


def reader(package: str) -> Read:
    """The real signature of a module's name, as a list; raises Missing."""
    real = wheel(package)
    if real is not None:
        return lambda module, path: written(real.signature(module, path))
    if package == "flashinfer":
        reason = "the real flashinfer's sources are missing: python tools/real_wheels.py"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    told = json.loads(RECORDED.read_text("utf-8"))

    def recorded(module: str, path: str) -> list[str]:
        if f"{module}:{path}" not in told:
            raise Missing(f"{module}:{path} was not recorded: python tools/real_wheels.py --record")
        return list(told[f"{module}:{path}"])

    return recorded


def ours(module: str, path: str) -> list[str]:
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return written(of_object(found))


@pytest.mark.parametrize("package", PACKAGES)
def test_what_the_fakes_export_is_what_the_real_package_has(package: str) -> None:
    real = reader(package)
    wrong: list[str] = []
    compared = 0
    for module, path, kind in exported(package):
        if kind == "class":
            continue
        try:
            wanted = real(module, path)
        except Missing as missing:
            wrong.append(f"the real package lacks {module}:{path} ({missing})")
            continue
        compared += 1
        if ours(module, path) != wanted:
            wrong.append(f"{module}:{path}\n  real {wanted}\n  ours {ours(module, path)}")
    assert not wrong, "\n".join(wrong)
    assert compared > {"flashinfer": 90, "sgl_kernel": 20}[package]


@pytest.mark.parametrize("package", PACKAGES)
def test_what_was_recorded_is_still_so(package: str) -> None:
    real = wheel(package)
    if real is None:
        pytest.skip(f"the wheel of {package} is not here")
    told = json.loads(RECORDED.read_text("utf-8"))
    for key, signature in told.items():
        module, _, path = key.partition(":")
        if module.split(".")[0] == package:
            assert written(real.signature(module, path)) == signature, key


PACKAGE = {
    "__init__.py": "from .core import *\nfrom .core import Run as Runner\nfrom .other import helper\n",
    "core.py": """
import functools
from typing import overload

def plain(a, b=1e-6, *rest, c: int = None, **more): ...

alias = plain
logged = functools.partial(plain, b=2)

if True:
    def chosen(x): ...
else:
    def chosen(y): ...

class Base:
    def forward(self, q, *, scale=torch.float16): ...

class Run(Base):
    def __init__(self, size: int = 8 << 20): ...
    @overload
    def run(self, q): ...
    def run(self, q, *args, lse=False): ...
    run_lse = functools.partialmethod(run, lse=True)
    begin = run
""",
    "other/__init__.py": "from ..core import plain\nfrom .deep import helper\n",
    "other/deep.py": "def helper(z, /, w=(1, 2)): ...\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Sources:
    for name, text in PACKAGE.items():
        file = tmp_path / "pack" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return Sources(tmp_path)


@pytest.mark.parametrize(
    ("module", "path", "signature"),
    [
        ("pack.core", "plain", ["a", "b=1e-06", "*rest", "c=None", "**more"]),
        ("pack", "alias", ["a", "b=1e-06", "*rest", "c=None", "**more"]),
        ("pack.other", "plain", ["a", "b=1e-06", "*rest", "c=None", "**more"]),
        ("pack", "logged", ["a", "*", "b=2", "c=None", "**more"]),
        ("pack", "helper", ["z", "w=(1, 2)"]),
        ("pack", "Runner", ["self", "size=8 << 20"]),
        ("pack", "Runner.run", ["self", "q", "*args", "lse=False"]),
        ("pack", "Run.run_lse", ["self", "q", "*args", "lse=True"]),
        ("pack", "Run.begin", ["self", "q", "*args", "lse=False"]),
        ("pack", "Run.forward", ["self", "q", "*", "scale=torch.float16"]),
    ],
)
def test_the_reader_follows_imports_aliases_and_partials(
    package: Sources, module: str, path: str, signature: list[str]
) -> None:
    assert written(package.signature(module, path)) == signature


def test_the_reader_says_what_is_missing(package: Sources) -> None:
    for module, path, message in (
        ("pack", "absent", "pack has no absent"),
        ("pack.absent", "x", "no module pack.absent"),
        ("pack", "Run.absent", "has no absent"),
        ("pack", "plain.run", "is no class"),
    ):
        with pytest.raises(Missing, match=message):
            package.signature(module, path)


def test_a_difference_is_seen() -> None:
    def one(a: int, b: int = 1) -> None: ...
    def name(a: int, c: int = 1) -> None: ...
    def order(b: int, a: int = 1) -> None: ...
    def kind(a: int, *, b: int = 1) -> None: ...
    def default(a: int, b: int = 2) -> None: ...
    def more(a: int, b: int = 1, c: int = 1) -> None: ...

    told = [written(of_object(function)) for function in (one, name, order, kind, default, more)]
    assert len({tuple(signature) for signature in told}) == 6
