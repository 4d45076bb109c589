"""Where a problem can run, found out from what it imports: `runs` in problem.toml is held against this.

- cpu: always.
- browser: nothing that the browser's Python lacks is imported by what runs there (driver, checks, the reference, and all
  of the tree that these import), and no case is a conversation with a stub.
- gpu: a kernel package is imported somewhere, so that the real one can stand in its place; or something is timed. Not
  where cases are conversations: their kernels are the checker's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from judge.packages import ROOT, Package
from tools import steps

# The browser has Pyodide's standard library (no processes, sockets, threads that help) and our own torch.
PACKAGES = (
    "transformers tokenizers safetensors zmq msgpack fastapi uvicorn httpx2 numpy prompt_toolkit triton gguf"
)
MODULES = "subprocess multiprocessing socket asyncio ctypes resource signal concurrent"
ABSENT = frozenset(f"{PACKAGES} {MODULES}".split())
KERNELS = frozenset({"flashinfer", "sgl_kernel"})


def possible_runs(package: Package) -> list[str]:
    """The kinds of run that the package allows, in the order browser, cpu, gpu."""
    files = ("driver.py", "check.py", "solution.py", "stub.py")
    found = set(_closure(_imports(package.text(f) for f in files if f in package.files), package))
    if package.target:
        found |= set(_closure([_module(package.target.partition(":")[0])], package))
    tops = {name.partition(".")[0] for name in found}
    runs = ["cpu"]
    if not tops & ABSENT and not package.has_stub:
        runs.insert(0, "browser")
    if (tops & KERNELS and not package.has_stub) or package.info.timing is not None:
        runs.append("gpu")
    return runs


def _imports(sources: Iterable[str]) -> Iterator[str]:
    """Modules imported when these sources are executed, or later inside their functions."""
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _closure(names: Iterable[str], package: Package) -> Iterator[str]:
    """These modules and, for those of the chapter's tree, what they import at their top level, and so on."""
    files = {_module(path): path for path in steps.tree_files(package.chapter)}
    waiting, seen = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        if name.partition(".")[0] == "minisgl":
            parents = [name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1)]
            waiting += parents
            if name in files:
                waiting += _top_level((ROOT / files[name]).read_text(encoding="utf-8"))


def _top_level(source: str) -> Iterator[str]:
    """What a module of the tree imports when it is imported itself; its functions import the rest when they are called."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports([ast.unparse(node)])


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
