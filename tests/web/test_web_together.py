"""Which cases fail together, and what of it may be told."""

from __future__ import annotations

import pytest

from web.together import fail_together

WRONG = {"status": "wrong_answer", "time_ms": 0}


def public(name, *found, **more):
    return {
        **WRONG,
        "name": f"public/{name}",
        "group": "public",
        "message": {"code": "mismatches", "params": {"list": list(found)}},
        "mismatches": list(found),
        **more,
    }


def hidden(*found, **more):
    return {
        **WRONG,
        "name": "hidden",
        "group": "hidden",
        "message": {"code": "mismatches", "params": {"list": list(found)}},
        **more,
    }


def value(field, **params):
    return {"code": "value", "field": field, "params": params}


def members(cases, lang="en"):
    return [(g.public, g.hidden) for g in fail_together(cases, lang)]


def test_the_same_way_of_failing_is_one_group():
    cases = [
        public("a", value("kv_indptr[1]", expected=31337, got=1), value("kv_indptr[2]", expected=3, got=2)),
        hidden(value("kv_indptr")),
        hidden(value("kv_indptr")),
        hidden(value("kv_indptr"), value("kv_indices")),
        {**WRONG, "name": "b", "group": "public", "status": "accepted", "message": None, "mismatches": []},
        {**WRONG, "name": "hidden", "group": "hidden", "status": "not_run", "message": None},
    ]
    assert members(cases) == [(["a"], 2), ([], 1)]
    first, second = fail_together(cases, "en")
    assert first.texts == ["kv_indptr: wrong values"]  # no value of a public case stands for a hidden one
    assert len(second.texts) == 2
    assert fail_together(cases, "zh")[0].texts == ["kv_indptr 的值不对"]


def test_another_status_or_another_exception_is_another_way():
    def raised(kind, group="hidden"):
        message = {"code": "exception", "params": {"type": kind, "text": "", "line": 3}}
        return hidden(status="runtime_error", message=message, group=group)

    cases = [
        raised("IndexError"),
        raised("KeyError"),
        raised("IndexError", "public"),
        hidden(status="time_limit", message=None),
    ]
    groups = fail_together(cases, "en")
    assert [(g.texts, g.count) for g in groups] == [
        (["IndexError"], 2),
        (["KeyError"], 1),
        (["time limit"], 1),
    ]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_page_shows_the_groups(app, browser, judge_all, lang):
    package = app.extensions["course"].packages[200]
    number = browser.submit(package.wrong["rows_by_enumeration"].source)
    judge_all()
    page = browser.get(f"/submissions/{number}", lang).text
    part = page.split('class="together"')[1].split("</ul>")[0]
    assert "kv_indices" in part
    assert any(f"<code>{case.name}</code>" in part for case in package.public)


def test_every_mistake_of_every_kind_of_problem_can_be_grouped(app, browser, judge_all):
    for problem in (74, 141, 201):
        package = app.extensions["course"].packages[problem]
        numbers = [browser.submit(wrong.source, problem=problem) for wrong in package.wrong.values()]
        judge_all()
        for number in numbers:
            answer = browser.get(f"/submissions/{number}", "zh")
            assert answer.status_code == 200
            assert 'class="together"' in answer.text
