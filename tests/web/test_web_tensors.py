"""Tensors of an answer beside what came: marked as the judge judges, with the largest difference."""

from __future__ import annotations

import pytest

from web.display import side_by_side
from web.tensors import MAX_ELEMENTS


def tensor(data, dtype="float32"):
    shape, here = [], data
    while isinstance(here, list):
        shape.append(len(here))
        here = here[0] if here else None
    return {"tensor": {"dtype": dtype, "shape": shape, "data": data}}


def row(want, got, wrong=("a",), tolerance=None):
    [found] = side_by_side({"a": want}, {"a": got}, wrong, tolerance or {})
    return found


def marked(pieces):
    return [p.text for p in pieces if p.differs]


def text(pieces):
    return "".join(p.text for p in pieces)


def test_only_what_is_beyond_the_tolerance_is_marked():
    want, got = tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([[1.0000001, 2.0], [3.5, 4.0000001]])
    found = row(want, got)
    assert marked(found.got) == ["3.5"]
    assert marked(found.expected) == ["3.0"]
    assert (found.largest.size, found.largest.place) == (0.5, (1, 0))
    assert text(found.expected) == "float32 (2, 2)\n    [[1.0, 2.0],\n     [3.0, 4.0]]"


def test_the_tolerance_is_the_problems_and_relative_to_the_answer():
    want, got = tensor([1000.0, 1.0]), tensor([1000.0, 1.5])
    assert marked(row(want, got, tolerance={"float32": 1e-3}).got) == [
        "1.5"
    ]  # less than allowed: whatever differs
    want, got = tensor([1000.0, 1.0, 2.0]), tensor([1000.0, 1.5, 9.0])
    assert marked(row(want, got, tolerance={"float32": 1e-3}).got) == ["9.0"]
    assert marked(row(want, got, tolerance={"float32": 1e-6}).got) == ["1.5", "9.0"]


def test_what_the_judge_finds_right_is_not_marked():
    found = row(tensor([1.0]), tensor([1.0000001]), wrong=())
    assert found.same
    assert not marked(found.got)
    assert not row(tensor([1.0]), tensor([1.0000001]), wrong=None).same


def test_a_field_that_is_missing_is_never_the_same():
    rows = {r.name: r for r in side_by_side({"a": 1, "b": 2}, {"a": 1, "c": 3}, ())}
    assert [rows[n].same for n in "abc"] == [True, False, False]


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (tensor([1, 2], "int64"), ["int64"]),
        (tensor([1, 2, 9], "int32"), ["(3,)", "9"]),
        (tensor([[1, 2]], "int32"), ["(1, 2)"]),
        (tensor([{"float": "nan"}, 2], "int32"), ["nan"]),
        (tensor([1, True], "int32"), ["True"]),
        ([1, 2], ["[1, 2]"]),
        ({"tensor": {"dtype": "int32", "shape": [], "data": 7}}, ["int32 7"]),
    ],
)
def test_other_types_shapes_and_things_are_marked(got, expected):
    assert marked(row(tensor([1, 2], "int32"), got).got) == expected


def test_long_tensors_are_cut():
    found = row(tensor([0] * 3000, "int32"), tensor([1] * 3000, "int32"))
    assert len(marked(found.got)) == MAX_ELEMENTS
    assert text(found.got).endswith(", …]")
    grid = tensor([[0] * 100] * 30, "int32")
    assert len(marked(row(grid, tensor([[1] * 100] * 30, "int32")).got)) == MAX_ELEMENTS


def test_empty_and_deep_tensors_are_written():
    assert text(row(tensor([], "int32"), tensor([1], "int32")).expected) == "int32 (0,) []"
    deep = tensor([[[1, 2]], [[3, 4]]], "int32")
    assert marked(row(deep, tensor([[[1, 2]], [[3, 5]]], "int32")).got) == ["5"]


def test_an_accepted_case_shows_no_difference(app, browser, judge_all):
    """Problem 83 gives floats: they agree within its tolerance, not bit for bit."""
    package = app.extensions["course"].packages[83]
    number = browser.submit(package.solution, problem=83)
    wrong = browser.submit(next(iter(package.wrong.values())).source, problem=83)
    judge_all()
    assert 'class="differs"' not in browser.get(f"/submissions/{number}").text
    page = browser.get(f"/submissions/{wrong}").text
    assert 'class="differs"' in page
    assert "largest difference" in page
