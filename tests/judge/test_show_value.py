"""Values as people read them, in statements, in the terminal and on pages."""

import ast

import pytest
import torch

from judge.core.values import to_display
from judge.packages import show_value

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "value", [3, -2.0, True, None, "a\n“b”", [1, [2.5, "x"]], {"a": 1, "b": [{"c": 2}]}, {}, {3: [4]}]
)
def test_plain_values_are_written_as_python_writes_them(value):
    assert ast.literal_eval(show_value(to_display(value))) == value


def test_floats_that_json_lacks_are_written_by_their_names():
    assert show_value(to_display([NAN, INF, -INF, 1.0])) == "[nan, inf, -inf, 1.0]"
    assert show_value(to_display(torch.tensor([[NAN, 0.5]]))) == "float32 (1, 2)\n    [[nan, 0.5]]"
    assert show_value(to_display({"limit": INF})) == '{"limit": inf}'


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((2,), "int64 [0, 0]"),
        ((0,), "int64 []"),
        ((), "int64 0"),
        ((0, 3), "int64 (0, 3)\n    []"),
        ((0, 2, 3), "int64 (0, 2, 3) []"),
        ((2, 0, 3), "int64 (2, 0, 3) [[], []]"),
        ((1, 1, 2), "int64 [[[0, 0]]]"),
    ],
)
def test_the_shape_of_a_tensor_can_be_seen_or_is_said(shape, said):
    assert show_value(to_display(torch.zeros(shape, dtype=torch.int64))) == said
