"""problems/README.md: the table of all problems, made from their packages."""

from __future__ import annotations

from collections.abc import Iterable

from judge.packages import Package
from tools.steps_track import in_track

HEAD = """# 题目 · Problems

由 `python tools/problems.py table` 生成。Written by `python tools/problems.py table`.

难度 difficulty: E 简单 easy, M 中等 medium, H 困难 hard. 运行 runs: b 浏览器 browser, c CPU, g GPU, t 计时 timed.
题型 kind: f 函数 function, g 移植 graft, F 整个文件 file, 带 * 的考调用 * about calls.

| id | 题目 | problem | 章 ch | 难度 | 题型 | 运行 | 要点 | idea |
|---|---|---|---|---|---|---|---|---|
"""
KINDS = {"function": "f", "graft": "g", "file": "F"}


def table(packages: Iterable[Package]) -> str:
    """The whole text of problems/README.md."""
    return HEAD + "".join(_row(p) for p in packages)


def _row(package: Package) -> str:
    info = package.info
    cells = (
        str(package.id),
        package.title["zh"],
        package.title["en"],
        "F" if in_track(package.id) else str(package.chapter),
        package.difficulty[0].upper(),
        KINDS[package.kind] + ("*" if package.has_stub else ""),
        "".join(run[0] for run in info.runs) + ("t" if info.timing else ""),
        info.idea["zh"],
        info.idea["en"],
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
