"""A chapter's tree, laid out in a folder: sources, replaced and stubbed as asked, and their bytecode.

The judge builds one for each problem, and what it shows to a submission must not contain the answer: the
bodies of withheld functions are cut out of the source before anything is compiled. Bytecode is written as
unchecked hash-based .pyc (PEP 552), so that Python neither compares times nor recompiles, and a read-only
folder imports quickly.
"""

from __future__ import annotations

import ast
import importlib.util
import marshal
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from tools.steps_manifest import ROOT, StepError, tree_files, tree_sources

_NOTHING: Mapping[str, str] = MappingProxyType({})
_UNCHECKED_HASH = (0b01).to_bytes(4, "little")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def build(
    number: int,
    dest: Path,
    *,
    replace: Mapping[str, str] = _NOTHING,
    stub: Sequence[str] = (),
    root: Path = ROOT,
) -> None:
    """Lay out chapter `number`'s tree in `dest`, a folder that is empty or does not exist.

    replace: path in the tree -> source text that stands in for the file.
    stub: "path:name", "path:Class.method" or "path:Class" (every method of it): the body, with its docstring,
    becomes `raise NotImplementedError`; signature and decorators stay, and so do the line numbers around it.

    StepError for a folder in use, a path or symbol that the tree does not have, or a source that does not
    compile.
    """
    paths = tree_files(number, root)
    if strange := sorted(set(replace) - set(paths)):
        raise StepError(f"chapter {number}'s tree has no file {strange[0]}, so it cannot be replaced")
    stubs = _by_file(stub)
    if strange := sorted(set(stubs) - set(paths)):
        raise StepError(f"chapter {number}'s tree has no file {strange[0]}, so nothing in it can be stubbed")
    if dest.exists() and any(dest.iterdir()):
        raise StepError(f"{dest} is not empty: a tree is built in a folder of its own")

    dest.mkdir(parents=True, exist_ok=True)  # chapter 0's tree has no file
    caches: set[Path] = set()
    for path in paths:
        source = replace[path] if path in replace else _source(root, path)
        if path in stubs:
            source = stub_source(source, stubs[path], path)
        file = dest / path
        cache = file.parent / "__pycache__"
        if cache not in caches:
            cache.mkdir(parents=True)
            caches.add(cache)
        file.write_text(source, encoding="utf-8")
        (cache / f"{file.stem}.{sys.implementation.cache_tag}.pyc").write_bytes(_bytecode(path, source))
    for path in tree_sources(number, root):
        (dest / path).parent.mkdir(parents=True, exist_ok=True)
        (dest / path).write_text(_source(root, path), encoding="utf-8")


def stub_source(source: str, symbols: Iterable[str], path: str) -> str:
    """`source` with the bodies of the functions and classes named by `symbols` cut out; see `build`."""
    tree = _parse(source, path)
    functions: dict[tuple[int, int], tuple[str, _Function]] = {}
    docstrings: list[ast.stmt] = []
    for symbol in symbols:
        found = _find(tree, symbol)
        if isinstance(found, ast.ClassDef):
            docstrings += found.body[:1] if ast.get_docstring(found, clean=False) is not None else []
            methods = [node for node in found.body if isinstance(node, _Function)]
            if not methods:
                raise StepError(f"{path}:{symbol} is a class without methods: there is nothing to stub")
            chosen = [(f"{symbol}.{method.name}", method) for method in methods]
        elif isinstance(found, _Function):
            chosen = [(symbol, found)]
        else:
            raise StepError(f"{path} has no function, method or class {symbol!r} to stub")
        functions.update({(node.lineno, node.col_offset): (name, node) for name, node in chosen})

    lines = source.split("\n")  # not splitlines: Python counts no other character as the end of a line
    edits = [(node.body[0], node, name) for name, node in functions.values()]
    for first, node, name in edits:
        body = f'raise NotImplementedError("{name} is withheld here: it is what you write")'
        _cut(lines, first, node.body[-1], body, node.col_offset + 4)
    for docstring in docstrings:
        _cut(lines, docstring, docstring, '"""Withheld."""', docstring.col_offset)
    stubbed = "\n".join(lines)
    _parse(stubbed, path)
    return stubbed


def _cut(lines: list[str], first: ast.stmt, last: ast.stmt, text: str, indent: int) -> None:
    """Put `text` in place of the statements first..last, and blank lines where they had more than one."""
    start, end = first.lineno - 1, (last.end_lineno or last.lineno) - 1
    if isinstance(first, _Function | ast.ClassDef) and first.decorator_list:
        start = first.decorator_list[0].lineno - 1
    head = lines[start].encode()[: first.col_offset].decode()
    if head.strip():  # the body begins on the line of its `def`
        lines[start] = f"{head.rstrip()} {text}"
    else:
        lines[start] = f"{' ' * indent}{text}"
    for at in range(start + 1, end + 1):
        lines[at] = ""


def _by_file(stub: Sequence[str]) -> dict[str, list[str]]:
    stubs: dict[str, list[str]] = {}
    for item in stub:
        path, colon, symbol = item.partition(":")
        if not colon or not symbol:
            raise StepError(
                f"{item!r} names no symbol: write PATH:NAME, such as minisgl/core.py:Req.complete_one"
            )
        stubs.setdefault(path, []).append(symbol)
    return stubs


def _find(tree: ast.Module, symbol: str) -> ast.AST | None:
    here: ast.AST | None = tree
    for part in symbol.split("."):
        body = getattr(here, "body", []) if isinstance(here, ast.Module | ast.ClassDef) else []
        here = next(
            (node for node in body if isinstance(node, _Function | ast.ClassDef) and node.name == part), None
        )
    return here


def _source(root: Path, path: str) -> str:
    try:
        return (root / path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StepError(
            f"{path} is listed in steps/, but there is no such file: run `steps.py check`"
        ) from None


def _parse(source: str, path: str) -> ast.Module:
    try:
        return ast.parse(source, path)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise StepError(f"{path}{f', line {line}' if line else ''} does not compile: {error}") from error


@lru_cache(maxsize=1024)
def _bytecode(path: str, source: str) -> bytes:
    """The .pyc of a file. Its code has the path inside the tree; the importer puts the real one there."""
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise StepError(f"{path}{f', line {line}' if line else ''} does not compile: {error}") from error
    digest = importlib.util.source_hash(source.encode())
    return importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH + digest + marshal.dumps(code)
