"""The files of a new problem package, each with what has to be written in it."""

from __future__ import annotations

from pathlib import Path

from tools.steps_track import in_track, load_track

TOML = """id = {number}
chapter = {chapter}
slug = "{slug}"
difficulty = "medium"
kind = "{kind}"
{entry}
signature = "{name}(x)"
outputs = []
needs = [{needs}]
runs = ["cpu"]
random_cases = 4

[title]
zh = "{slug}"
en = "{slug}"

[idea]
zh = "……"
en = "..."

[tags]
zh = []
en = []
"""
STATEMENT = """{what}

`{name}(x)`

{{{{case smallest}}}}
"""
CASES = '''"""Cases of problem {number}."""


def public():
    return {{"smallest": {{"x": 1}}}}


def fixed():
    """The adversarial cases that are always there."""
    return {{"zero": {{"x": 0}}}}


def teach():
    """Up to 20 tiny cases that may be shown after a failure."""
    return {{"one": {{"x": 1}}}}


def generate(rng):
    """One random hidden case; `rng` is judge.core.rng.Rng."""
    return {{"x": rng.integer(2, 99)}}
'''
WRONG = """# One table for each wrong/NAME.py. The text goes on after "your output is exactly what this program gives:".
#
# [off_by_one]
# section = "ch{chapter:02}#anchor"
# [off_by_one.diagnosis]
# zh = "……"
# en = "..."
"""


def write(folder: Path, number: int, slug: str, kind: str) -> None:
    """Create the folder and its files."""
    chapter = load_track().tree if in_track(number) else (number - 30) // 10
    graft = kind == "graft"
    entry = 'target = "minisgl/core.py:Req.complete_one"' if graft else f'entry = "{slug}"'
    name = "complete_one" if graft else slug
    files = {
        "problem.toml": TOML.format(
            number=number,
            chapter=chapter,
            slug=slug,
            kind=kind,
            entry=entry,
            name=name,
            needs='"tree"' if graft else "",
        ),
        "statement.zh.md": STATEMENT.format(what="题目要求什么。", name=name),
        "statement.en.md": STATEMENT.format(what="What the problem asks for.", name=name),
        "starter.py": f"def {name}(x):\n    raise NotImplementedError\n",
        "solution.py": f"def {name}(x):\n    return x\n",
        "cases.py": CASES.format(number=number),
        "public.json": "[]\n",
        "wrong/wrong.toml": WRONG.format(chapter=chapter),
    }
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
