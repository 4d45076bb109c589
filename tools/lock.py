"""Pins: `python tools/lock.py` writes requirements.lock from what is installed here, and package-lock.json from
package.json. `--check` only says whether requirements.lock still fits pyproject.toml.

To change a dependency: edit pyproject.toml, install it into the virtual environment, run this. Walking what is
installed, instead of asking an index, keeps out what one build of torch pulls in and another does not.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

if __package__ in (None, ""):  # run as a script: its own folder is on the path, the repository is not
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import click
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from tools.frontend import FRONTEND, FrontendError, find_node

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
NPM_S = 300


class LockError(Exception):
    """The pins cannot be written or do not fit; the text says which and what to do."""


@click.command(help=__doc__)
@click.option("--check", is_flag=True, help="Change nothing; fail if requirements.lock does not fit.")
def main(check: bool) -> None:
    wanted = list(direct())
    if check:
        faults = misfits(wanted, LOCK.read_text("utf-8"))
        if faults:
            raise LockError("; ".join(faults))
        return
    LOCK.write_text(locked(wanted), "utf-8")
    lock_frontend()


def direct() -> Iterator[Requirement]:
    """What pyproject.toml asks for, development tools included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for line in [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]:
        yield Requirement(line)


def locked(wanted: list[Requirement]) -> str:
    """The text of requirements.lock: everything that `wanted` needs, at the installed version. Raises LockError for a
    package that is not installed, or not at the version asked for."""
    markers = {canonicalize_name(r.name): r.marker for r in wanted}
    pins: dict[NormalizedName, str] = {}
    todo = [(r, frozenset(r.extras)) for r in wanted]
    seen: set[tuple[NormalizedName, frozenset[str]]] = set()
    while todo:
        requirement, extras = todo.pop()
        name = canonicalize_name(requirement.name)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise LockError(
                f"{requirement} is not installed: pip install it into {sys.prefix} first"
            ) from None
        version = Version(found.version)
        if not requirement.specifier.contains(version, prereleases=True):
            raise LockError(
                f"{requirement} is asked for, but {found.version} is installed: pip install it first"
            )
        pins[name] = (
            version.public
        )  # "+cpu" names a build, not a version: an index without it has the same code
        for line in found.requires or []:
            needed = Requirement(line)
            if _applies(needed, extras):
                todo.append((needed, frozenset(needed.extras)))
    lines = [f"{n}=={v}{f'; {markers[n]}' if markers.get(n) else ''}" for n, v in sorted(pins.items())]
    return "\n".join(lines) + "\n"


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    if requirement.marker is None:
        return True
    return any(requirement.marker.evaluate({"extra": extra}) for extra in (extras or {""}))


def misfits(wanted: list[Requirement], text: str) -> list[str]:
    """Where a requirements.lock does not hold what pyproject.toml asks for, one sentence each."""
    pins = {canonicalize_name(r.name): r for r in map(Requirement, text.split("\n")[:-1])}
    faults = []
    for requirement in wanted:
        pin = pins.get(canonicalize_name(requirement.name))
        if pin is None:
            faults.append(f"{requirement.name} is not in {LOCK.name}")
        elif pin.specifier != requirement.specifier:
            faults.append(f"{LOCK.name} has {pin}, pyproject.toml asks for {requirement}")
    return faults


def lock_frontend() -> None:
    """Bring package-lock.json up to date with package.json. Raises LockError."""
    node = find_node()
    command = [*node.npm, "install", "--package-lock-only", "--ignore-scripts", "--loglevel=error"]
    done = subprocess.run(
        command, cwd=FRONTEND, env=node.env, capture_output=True, text=True, timeout=NPM_S, check=False
    )
    if done.returncode:
        raise LockError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    if '"resolved"' in (FRONTEND / "package-lock.json").read_text("utf-8"):
        raise LockError(
            "package-lock.json holds download addresses: is omit-lockfile-registry-resolved in .npmrc?"
        )


def run() -> None:
    """The command; its errors are sentences for the reader, not tracebacks."""
    try:
        main()
    except (LockError, FrontendError) as error:
        click.echo(f"lock: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    run()
