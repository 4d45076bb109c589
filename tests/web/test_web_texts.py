"""What readers read: complete in both languages, safe as HTML, true about the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from judge.store import StoreSettings
from judge.worker import WorkerSettings
from web.display import side_by_side
from web.messages import CHINESE, extract, read
from web.settings import Settings
from web.text import render, render_inline

README = Path(__file__).resolve().parents[2] / "web" / "README.md"
CJK = re.compile(r"[\u4e00-\u9fff]")
PARAMETER = re.compile(r"%\((\w+)\)\w")


@pytest.fixture(scope="module")
def sentences():
    return {m.id if isinstance(m.id, str) else m.id[0]: m for m in extract() if m.id}


@pytest.fixture(scope="module")
def chinese():
    with CHINESE.open("rb") as source:
        return {m.id if isinstance(m.id, str) else m.id[0]: m for m in read(source, "zh") if m.id}


def test_the_catalogue_has_every_sentence_and_no_other(sentences, chinese):
    assert chinese.keys() == sentences.keys(), "run `python -m web.messages` and translate what is new"


def test_every_sentence_has_its_chinese(chinese):
    for key, message in chinese.items():
        forms = [message.string] if isinstance(message.string, str) else list(message.string)
        assert all(forms), f"no translation: {key}"
        assert not message.fuzzy, f"uncertain translation: {key}"


def test_every_sentence_is_english_in_the_code(sentences):
    for key in sentences:
        assert not CJK.search(key), f"write it in English in the code, and in Chinese in the catalogue: {key}"


def test_translations_keep_the_parameters(chinese):
    for key, message in chinese.items():
        forms = [message.string] if isinstance(message.string, str) else list(message.string)
        for form in forms:
            assert set(PARAMETER.findall(form)) == set(PARAMETER.findall(key)), key


def test_templates_hold_no_sentence_outside_the_catalogue():
    """Words between tags that no `_()` wraps would show in one language only."""
    for path in (README.parent).rglob("templates/**/*.html"):
        source = re.sub(
            r"\{#.*?#\}|\{% block body_class %\}\w+|\{%.*?%\}|\{\{.*?\}\}|<!--.*?-->|<[^>]+>",
            " ",
            path.read_text("utf-8"),
            flags=re.S,
        )
        words = [
            w
            for w in re.findall(r"[A-Za-z\u4e00-\u9fff]{3,}", source)
            if w not in {"make", "serve", "enter", "token"}
        ]
        assert words == [], f"{path.name}: {words}"


def test_the_settings_table_is_complete():
    table = dict(re.findall(r"^\| `(COURSE_\w+)` \| (.+?) \|", README.read_text("utf-8"), re.MULTILINE))
    fields = {**StoreSettings.model_fields, **Settings.model_fields, **WorkerSettings.model_fields}
    assert set(table) == {f"COURSE_{name.upper()}" for name in fields}
    for name, info in fields.items():
        assert info.description in README.read_text("utf-8"), name


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "```<script>\n</code></pre><script>alert(1)</script>\n```",
        "# <script>alert(1)</script>",
        "::: hint <script>alert(1)</script>\nx\n:::",
        "| <script>alert(1)</script> |\n|---|\n| x |",
    ],
)
def test_markdown_gives_no_live_script(hostile):
    html = str(render(hostile)) + str(render_inline(hostile))
    assert not re.search(r"<script|<img|<[^>]+\son\w+=|href=\"(javascript|data):", html)


def test_folded_hints_and_anchors():
    html = str(render("## 指针 {#indptr}\n\n::: hint 提示\n试试 `cumsum`。\n:::\n"))
    assert '<h2 id="indptr">指针</h2>' in html
    assert "<details" in html
    assert "<summary>提示</summary>" in html


TENSOR = {"tensor": {"dtype": "int32", "shape": [3], "data": [0, 2, 3]}}


@pytest.mark.parametrize(
    ("got", "marked"),
    [
        (TENSOR, []),
        ({"tensor": {"dtype": "int32", "shape": [3], "data": [0, 5, 3]}}, ["5"]),
        ({"tensor": {"dtype": "int64", "shape": [3], "data": [0, 2, 3]}}, ["int64"]),
        ({"tensor": {"dtype": "int32", "shape": [2], "data": [2, 3]}}, ["(2,)", "2", "3"]),
        (
            {"tensor": {"dtype": "float32", "shape": [3], "data": [0.0, {"float": "nan"}, 3.0]}},
            ["float32", "nan"],
        ),
        (
            {"tensor": {"dtype": "int32", "shape": [1, 3], "data": [[0, 2, 3]]}},
            ["(1, 3)"],
        ),
        ("none at all", ['"none at all"']),
        (None, ["None"]),
        ([0, 2, 3], ["[0, 2, 3]"]),
    ],
)
def test_differences_are_marked_where_they_are(got, marked):
    [row] = side_by_side({"a": TENSOR}, {"a": got})
    assert [p.text for p in row.got if p.differs] == marked
    assert row.same is (not marked)


@pytest.mark.parametrize("got", [{}, {"b": 1}, TENSOR, [], 3, "x", {"dict": [[1, 2]]}, {"float": "inf"}])
def test_answers_of_another_kind_are_laid_beside(got):
    rows = side_by_side({"a": TENSOR}, got)
    assert rows[0].name == "a"
    assert not rows[0].same
    assert [p.text for p in rows[0].got] == ["—"]


def test_no_answer_at_all_leaves_the_column_out():
    [row] = side_by_side({"a": TENSOR}, None)
    assert row.got is None
    assert not any(p.differs for p in row.expected)
