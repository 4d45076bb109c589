"""What the chapters quote is what the repository has: excerpts of code, and the output of a chapter's
main.
"""

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tools.models import cached
from tools.steps_manifest import LANGUAGES, ROOT, Chapter, load_chapters

EXCERPT = re.compile(r"^`([\w/]+\.py)` · `([\w.]+)`\n\n```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```\w*\n(.*?)\n```$", re.MULTILINE | re.DOTALL)

TEXTS = [
    pytest.param(chapter, lang, id=f"{chapter.folder.name}-{lang}")
    for chapter in load_chapters().values()
    for lang in LANGUAGES
    if chapter.text(lang).is_file()
]


def source_of(path: str, symbol: str) -> str:
    """A function's or class's source, at the left margin."""
    source = (ROOT / path).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(source)
    for part in symbol.split("."):
        node = next(child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part)
    lines = source.split("\n")[node.lineno - 1 : node.end_lineno]  # type: ignore[attr-defined]
    return textwrap.dedent("\n".join(lines))


@pytest.mark.parametrize(("chapter", "lang"), TEXTS)
def test_excerpts_are_the_code(chapter: Chapter, lang: str) -> None:
    excerpts = EXCERPT.findall(chapter.text(lang).read_text(encoding="utf-8"))
    assert excerpts, "a chapter without a line of code?"
    for path, symbol, quoted in excerpts:
        assert quoted == source_of(path, symbol), f"{path}:{symbol} has changed since the text quoted it"


# The mains of the other chapters are run by `tools/steps.py check`, against the output that is kept.
@pytest.mark.parametrize(
    "chapter",
    [c for c in load_chapters().values() if c.main and any(c.text(lang).is_file() for lang in LANGUAGES)],
)
def test_the_mains_output_is_in_the_text(chapter: Chapter) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / str(chapter.main))],
        env={"MINISGL_MODEL": str(cached("thin")), "PYTHONIOENCODING": "utf-8", "PATH": ""},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    for lang in LANGUAGES:
        text: Path = chapter.text(lang)
        if text.is_file():
            assert done.stdout.strip("\n") in FENCE.findall(text.read_text(encoding="utf-8")), text


@pytest.mark.parametrize("chapter", [c for c in load_chapters().values() if c.text("zh").is_file()])
def test_both_languages_have_the_same_sections_in_the_same_order(chapter: Chapter) -> None:
    shapes = []
    for lang in LANGUAGES:
        text = re.sub(FENCE, "", chapter.text(lang).read_text(encoding="utf-8"))
        headings = re.findall(r"^(#+) .*?(\{#[\w-]+\})?$", text, re.MULTILINE)
        shapes.append((headings, text.count("::: answer"), len(re.findall(r"^\d+\. ", text, re.MULTILINE))))
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(("chapter", "lang"), TEXTS)
def test_headings_are_those_of_the_manifest(chapter: Chapter, lang: str) -> None:
    text = chapter.text(lang).read_text(encoding="utf-8")
    headings = dict(
        (anchor, title) for title, anchor in re.findall(r"^#+ (.*) \{#([\w-]+)\}$", text, re.MULTILINE)
    )
    assert headings == {anchor: titles[lang] for anchor, titles in chapter.sections.items()}
