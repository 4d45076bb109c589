"""Chapters and trees as a reader sees them: the list, a chapter's tree, and what the chapter changes.

The tree is printed the way the course prints it: files in the order in which chapters bring them in, folders
in alphabetical order, and a folder in which nothing happens folded to one line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.steps_manifest import PACKAGE, ROOT, Chapter, StepError, chapters_of, get_chapter, tree_files

_WORDS = {
    "zh": {
        "counts": "到这一章为止的文件：{total} 个（新建 {new}，修改 {modified}，提前引入 {early}）",
        "new": "  ← 本章新建",
        "modified": "  ← 本章修改",
        "early": "  ← 提前引入，第 {chapter} 章讲",
        "folded": "  （{count} 个文件，不变）",
        "chapter": "第 {number} 章",
        "added": "新建",
        "changed": "修改",
        "borrowed": "提前引入",
        "lines": "{count} 行",
        "nothing": "这一章不动任何文件",
        "no_main": "（还没有 main）",
    },
    "en": {
        "counts": "Files up to this chapter: {total} (new {new}, modified {modified}, early {early})",
        "new": "  ← new in this chapter",
        "modified": "  ← modified in this chapter",
        "early": "  ← brought in early, explained in chapter {chapter}",
        "folded": "  ({count} {files}, unchanged)",
        "chapter": "Chapter {number}",
        "added": "new",
        "changed": "modified",
        "borrowed": "early",
        "lines": "{count} lines",
        "nothing": "this chapter touches no file",
        "no_main": "(no main yet)",
    },
}


def render_list(lang: str, root: Path = ROOT) -> str:
    """One line a chapter: number, title, files in its tree and new ones, and whether it lacks a main."""
    lines = []
    stage = None
    for chapter in chapters_of(root).values():
        if chapter.stage[lang] != stage:
            stage = chapter.stage[lang]
            lines.append(stage)
        total = len(tree_files(chapter.number, root))
        main = "" if chapter.main else f"  {_WORDS[lang]['no_main']}"
        lines.append(f"  {chapter.number:>2}  {chapter.title[lang]}  [{total}, +{len(chapter.new)}]{main}")
    return "\n".join(lines)


def render_tree(number: int, lang: str, root: Path = ROOT) -> str:
    """The counts line, a blank line, and the tree of chapter `number`."""
    words = _WORDS[lang]
    chapter = get_chapter(number, root)
    paths = tree_files(number, root)
    counts = words["counts"].format(
        total=len(paths), new=len(chapter.new), modified=len(chapter.modified), early=len(chapter.early)
    )
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.removeprefix(f"{PACKAGE}/").rpartition("/")
        folders.setdefault(folder, []).append(name)
    lines = [counts, "", f"{PACKAGE}/"]
    lines += [f"├── {name}{_mark(chapter, f'{PACKAGE}/{name}', words)}" for name in folders.pop("", [])]
    for folder in sorted(folders):
        names = folders[folder]
        marks = [_mark(chapter, f"{PACKAGE}/{folder}/{name}", words) for name in names]
        if not any(marks):
            files = "file" if len(names) == 1 else "files"
            lines.append(f"├── {folder}/{words['folded'].format(count=len(names), files=files)}")
            continue
        lines.append(f"├── {folder}/")
        lines += [f"│   ├── {name}{mark}" for name, mark in zip(names, marks, strict=True)]
    return "\n".join(lines)


def render_diff(number: int, lang: str, root: Path = ROOT) -> str:
    """What chapter `number` does to the tree before it: files with their lengths, symbols with their lines."""
    words = _WORDS[lang]
    chapter = get_chapter(number, root)
    lines = []
    for path in chapter.new:
        lines.append(f"+ {path}  {words['added']}, {_length(root, path, words)}")
    for path, later in chapter.early.items():
        where = words["chapter"].format(number=later)
        lines.append(f"+ {path}  {words['borrowed']} → {where}, {_length(root, path, words)}")
    for path, symbols in chapter.modified.items():
        lines.append(f"~ {path}  {words['changed']}")
        for symbol in symbols:
            first, last = symbol_lines(root, path, symbol)
            lines.append(f"    {symbol}  {path}:{first}-{last}")
    return "\n".join(lines) if lines else words["nothing"]


def symbol_lines(root: Path, path: str, symbol: str) -> tuple[int, int]:
    """First and last line of a function, class or method of a file; StepError if it has none of that name."""
    tree: ast.AST = ast.parse((root / path).read_text(encoding="utf-8"))
    for part in symbol.split("."):
        found = next((node for node in _definitions(tree) if node.name == part), None)
        if found is None:
            raise StepError(f"{path} has no {symbol}, which a chapter lists as modified in it")
        tree = found
    assert isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    first = tree.decorator_list[0].lineno if tree.decorator_list else tree.lineno
    return first, tree.end_lineno or tree.lineno


def _definitions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def _mark(chapter: Chapter, path: str, words: dict[str, str]) -> str:
    if path in chapter.new:
        return words["new"]
    if path in chapter.modified:
        return words["modified"]
    if path in chapter.early:
        return words["early"].format(chapter=chapter.early[path])
    return ""


def _length(root: Path, path: str, words: dict[str, str]) -> str:
    try:
        text = (root / path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StepError(
            f"{path} is listed in steps/, but there is no such file: run `steps.py check`"
        ) from None
    return words["lines"].format(count=text.count("\n"))
