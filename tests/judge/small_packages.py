"""Problem packages for tests, written where the test says."""

from __future__ import annotations

import json
from pathlib import Path

from judge.packages import Package, load_package

TOML = """
id = {id}
chapter = {chapter}
slug = "small"
difficulty = "easy"
kind = "{kind}"
entry = "{entry}"
signature = "{signature}"
runs = ["cpu"]
random_cases = 2
{more}

[title]
zh = "小题"
en = "Small"

[idea]
zh = "小"
en = "small"

[tags]
zh = []
en = []

[limits]
case_ms = 600
total_ms = 3000
memory_mb = 128
reply_kb = 64
"""


def write_package(folder: Path, *, files: dict[str, str], more: str = "", **toml: object) -> Package:
    """A package of these files; what a package must have and is not given is made up. `public.json` has the cases that
    `cases.py` calls public, without answers."""
    folder.mkdir(parents=True, exist_ok=True)
    given = {"id": 390, "chapter": 2, "kind": "function", **toml, "more": more}
    (folder / "problem.toml").write_text(TOML.format(**given), encoding="utf-8")
    (folder / "public.json").write_text(json.dumps([{"name": "first", "inputs": {"n": 2}, "expected": {}}]))
    for name in ("statement.zh.md", "statement.en.md", "starter.py"):
        (folder / name).write_text("", encoding="utf-8")
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return load_package(folder)
