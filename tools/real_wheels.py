"""The real packages behind the fakes: `python tools/real_wheels.py` fetches flashinfer's wheel into var/wheels/, so that
`tests/fakes/test_fake_wheel_signatures.py` can read its sources. Nothing is installed.

`--record` writes tests/fakes/golden/signatures.json: the real signatures of everything that the fakes export, which
tests without the wheels go by. sglang-kernel's wheel (377 MB) is never fetched: name a folder that has it in the
environment variable REAL_WHEELS.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

if __package__ in (None, ""):  # run as a script: its own folder is on the path, the repository is not
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import click

from tools.wheel_signatures import Missing, Sources, written

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "var" / "wheels"
RECORDED = ROOT / "tests" / "fakes" / "golden" / "signatures.json"
PACKAGES = {"flashinfer": ("flashinfer-python", "0.7.2.post1"), "sgl_kernel": ("sglang-kernel", "0.4.6")}
"""The distribution and version that each of the fakes has the interface of."""

FETCH_S = 300
BEHIND = {"flashinfer": [("flashinfer.decode", "BatchDecodeWithPagedKVCacheWrapper._plan_impl", "method")]}
"""Private functions that declare what a public one takes as **kwargs."""


@click.command(help=__doc__)
@click.option("--record", is_flag=True, help="Write golden/signatures.json from the wheels.")
def main(record: bool) -> None:
    fetch()
    if record:
        RECORDED.write_text(json.dumps(real_signatures(), indent=1) + "\n", "utf-8")


def fetch() -> Path:
    """Download flashinfer's wheel unless it is there. Returns its path; CalledProcessError if pip fails."""
    name, version = PACKAGES["flashinfer"]
    there = _wheel_in(WHEELS, "flashinfer")
    if there is not None:
        return there
    WHEELS.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(WHEELS), f"{name}=={version}"]
    subprocess.run(command, check=True, timeout=FETCH_S)
    fetched = _wheel_in(WHEELS, "flashinfer")
    if fetched is None:
        raise FileNotFoundError(f"pip put no wheel of {name} {version} into {WHEELS}")
    return fetched


def sources(package: str) -> Sources | None:
    """The real package's sources: in the folder REAL_WHEELS (a wheel, or the package unpacked), among the installed
    packages at the right version, or in var/wheels/. None if it is nowhere."""
    told = os.environ.get("REAL_WHEELS")
    if told:
        found = _wheel_in(Path(told), package)
        return None if found is None else Sources(found)
    name, version = PACKAGES[package]
    try:
        installed = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        wheel = _wheel_in(WHEELS, package)
        return None if wheel is None else Sources(wheel)
    if installed.version != version:
        raise LookupError(f"{name} {installed.version} is installed; the fakes are those of {version}")
    return Sources(Path(str(installed.locate_file(""))))


def exported(package: str) -> Iterator[tuple[str, str, str]]:
    """What the fake `package` offers: (module, path, kind), kind "function", "class" or "method". Names from a module's
    __all__, or without one those that it defines; of classes the public methods and __init__; and `BEHIND`."""
    root = importlib.import_module(package)
    names = [m.name for m in pkgutil.iter_modules(root.__path__) if not m.name.startswith("_")]
    for module in [root, *(importlib.import_module(f"{package}.{name}") for name in names)]:
        for name in _public(module):
            value = getattr(module, name)
            if inspect.isclass(value):
                yield module.__name__, name, "class"
                for method in _methods(value):
                    yield module.__name__, f"{name}.{method}", "method"
            elif callable(value):
                yield module.__name__, name, "function"
    yield from BEHIND.get(package, [])


def real_signatures() -> dict[str, list[str]]:
    """The real signatures of everything that the fakes export, keyed "module:path". RuntimeError without the wheels."""
    sys.path.insert(0, str(ROOT / "fakes"))
    found: dict[str, list[str]] = {}
    for package, (name, version) in PACKAGES.items():
        real = sources(package)
        if real is None:
            raise RuntimeError(f"the wheel of {name} {version} is not in REAL_WHEELS nor in {WHEELS}")
        for module, path, kind in exported(package):
            if kind != "class":
                found[f"{module}:{path}"] = written(real.signature(module, path))
    return found


def _public(module: ModuleType) -> list[str]:
    named = getattr(module, "__all__", None)
    if named is not None:
        return [name for name in named if not name.startswith("__")]
    mine = module.__name__
    return [n for n, v in vars(module).items() if n[0] != "_" and getattr(v, "__module__", None) == mine]


def _methods(owner: type) -> list[str]:
    public = [
        name for name, value in inspect.getmembers(owner) if callable(value) and not name.startswith("_")
    ]
    return ["__init__", *public]


def _wheel_in(folder: Path, package: str) -> Path | None:
    """The wheel of the right version in a folder, or the folder itself if it holds the package unpacked."""
    name, version = PACKAGES[package]
    found = sorted(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if found:
        return found[0]
    return folder if (folder / package / "__init__.py").is_file() else None


if __name__ == "__main__":
    try:
        main()
    except (Missing, LookupError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        raise SystemExit(f"real_wheels: {error}") from error
