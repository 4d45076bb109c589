"""Comparison: exact about kinds, within tolerance for floats, and said in words that are true."""

import pytest
import torch

from judge.core.compare import Comparer
from judge.core.wording import say_mismatch

compare = Comparer()


def codes(got, want, comparer=compare):
    return [m.code for m in comparer.outputs({"x": got}, {"x": want})]


def i32(*values):
    return torch.tensor(values, dtype=torch.int32)


SAME = [
    (i32(1, 2), i32(1, 2)),
    (torch.empty(0, dtype=torch.int32), torch.empty(0, dtype=torch.int32)),
    (torch.tensor([1.0, float("inf")]), torch.tensor([1.0, float("inf")])),
    (torch.tensor([1e6 + 1]), torch.tensor([1e6])),
    ([1, "a", None, True], [1, "a", None, True]),
    ((1, i32(3)), (1, i32(3))),
    ({"a": 1.0}, {"a": 1.0 + 1e-9}),
]
DIFFERENT = {
    "value": (i32(1, 3), i32(1, 2)),
    "dtype": (i32(1, 2).long(), i32(1, 2)),
    "shape": (i32(1), i32(1, 1)),
    "shape of a scalar": (torch.tensor(1, dtype=torch.int32), i32(1)),
    "type": ([1, 2], i32(1, 2)),
    "type of a bool": (True, 1),
    "type of a float": (1.0, 1),
    "type of a tuple": ([1], (1,)),
    "length": ([1], [1, 2]),
    "value of nan": (float("nan"), float("nan")),
    "value of a nan tensor": (torch.tensor([float("nan")]), torch.tensor([float("nan")])),
    "value of inf": (torch.tensor([1e30]), torch.tensor([float("inf")])),
    "value of minus inf": (torch.tensor([float("-inf")]), torch.tensor([float("inf")])),
    "value off the tolerance": (torch.tensor([1.001]), torch.tensor([1.0])),
    "missing": ({}, {"a": 1}),
    "unexpected": ({"a": 1, "b": 2}, {"a": 1}),
}


@pytest.mark.parametrize(("got", "want"), SAME)
def test_equal_outputs_have_no_mismatch(got, want):
    assert codes(got, want) == []


@pytest.mark.parametrize("name", DIFFERENT)
def test_each_difference_has_its_code(name):
    got, want = DIFFERENT[name]
    assert codes(got, want) == [name.split()[0]]


def test_a_huge_answer_does_not_excuse_a_wrong_nan():
    assert codes(torch.tensor([1e9, float("nan")]), torch.tensor([1e9, 1.0])) == ["value"]


def test_one_infinity_does_not_widen_the_tolerance():
    want = torch.tensor([float("inf"), 1.0])
    assert codes(torch.tensor([float("inf"), 2.0]), want) == ["value"]


def test_nan_and_signed_zero_where_a_problem_says_so():
    nan, zero = torch.tensor([float("nan")]), torch.tensor([0.0])
    assert codes(nan, nan, Comparer(nan_ok=["x"])) == []
    assert codes(-zero, zero) == []
    assert codes(-zero, zero, Comparer(signed_zero=["x"])) == ["value"]


def test_dtype_and_value_are_told_apart():
    found = compare.outputs({"x": i32(1, 9).long()}, {"x": i32(1, 2)})
    assert [(m.code, m.field) for m in found] == [("dtype", "x"), ("value", "x[1]")]
    right = compare.outputs({"x": i32(1, 2).long()}, {"x": i32(1, 2)})
    assert (
        say_mismatch(right[0], "en") == "x: expected dtype int32, got int64 (shape (2,) and values are right)"
    )


def test_the_sentence_of_the_design():
    (found,) = compare.outputs({"kv_indptr": i32(5, 5, 11)}, {"kv_indptr": i32(0, 5, 11)})
    assert (
        say_mismatch(found, "en") == "kv_indptr[0]: expected 0, got 5 (shape (3,) and dtype int32 are right)"
    )
    assert say_mismatch(found, "zh") == "kv_indptr[0]：应为 0，得到 5（形状 (3,) 和 dtype int32 是对的）"


def test_a_hidden_mismatch_names_no_value_and_no_index():
    for name, (got, want) in DIFFERENT.items():
        (found,) = compare.outputs({"x": got}, {"x": want})
        hidden = found.redacted()
        assert hidden.params == {}, name
        assert hidden.field == "x", name
        for lang in ("zh", "en"):
            assert not any(c.isdigit() for c in say_mismatch(hidden, lang, hidden=True))
