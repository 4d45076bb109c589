"""Mismatches drawn in text."""

from __future__ import annotations

from typing import Any

import pytest

from judge.core.picture import pictures

CUT = {"kv_indptr": "borders", "kv_indices": "kv_indptr", "last": "each"}


def ints(*values: int) -> dict[str, Any]:
    return {"tensor": {"dtype": "int32", "shape": [len(values)], "data": list(values)}}


def test_a_ragged_output_is_cut_by_each_sides_own_indptr() -> None:
    expected = {"kv_indptr": ints(0, 2, 4), "kv_indices": ints(4, 5, 10, 11)}
    got = {"kv_indptr": ints(0, 3, 5), "kv_indices": ints(4, 5, 6, 10, 11)}
    assert pictures(expected, got, CUT, "en")[1].splitlines() == [
        "kv_indices  │ request 0 │ request 1",
        "  expected  │ 4 5       │ 10 11",
        "  got       │ 4 5 6     │ 10 11",
        "                  ^",
    ]


def test_entries_stand_under_each_other_and_differences_are_marked_in_chinese_too() -> None:
    drawn = pictures({"last": ints(1, 2)}, {"last": ints(1, 16)}, CUT, "zh")
    assert drawn == ["last    │ 0 │ 1\n  应为  │ 1 │  2\n  得到  │ 1 │ 16\n               ^"]


@pytest.mark.parametrize(
    "got",
    [
        {"kv_indptr": ints(2, 1), "kv_indices": ints(4, 5)},
        {"kv_indptr": ints(0, 9), "kv_indices": ints(4, 5)},
        {"kv_indptr": ints(0, 2, 1), "kv_indices": ints(4)},
        {"kv_indices": ints()},
    ],
)
def test_what_cannot_be_cut_is_drawn_whole(got: dict[str, Any]) -> None:
    expected = {"kv_indptr": ints(0, 2, 4), "kv_indices": ints(4, 5, 10, 11)}
    drawn = pictures(expected, got, CUT, "en")[-1]
    assert drawn.splitlines()[0] in ("kv_indices", "kv_indices  │ request 0 │ request 1")
    assert "^" in drawn.splitlines()[-1]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        {"tensor": {"dtype": "float32", "shape": [1], "data": [0.5]}},
        {"tensor": {"dtype": "int32", "shape": [1, 1], "data": [[1]]}},
        [True],
        "int32 [90000] …",
    ],
)
def test_only_rows_of_integers_are_drawn(value: Any) -> None:
    assert pictures({"x": ints(1)}, {"x": value}, {}, "en") == []
    assert pictures({"x": value}, {"x": ints(1)}, {}, "en") == []
    assert pictures({"x": ints(1)}, None, {}, "en") == []


def test_a_long_output_is_cut_off_and_says_so() -> None:
    drawn = pictures({"x": list(range(500))}, {"x": [9, *range(1, 500)]}, {}, "en")[0]
    assert max(len(line) for line in drawn.splitlines()) < 130
    assert drawn.splitlines()[-1].startswith("…")
    assert "^" in drawn
