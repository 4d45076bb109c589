"""When public.json is what the reference gives today: floats may differ in their last bits, nothing else may."""

from __future__ import annotations

import pytest

from tools.problem_checks import _agree

TOLERANCE = {"float32": 1e-5, "float64": 1e-5, "bfloat16": 1e-2}


def tensor(dtype: str, *data: float) -> dict:
    return {"tensor": {"dtype": dtype, "shape": [len(data)], "data": list(data)}}


@pytest.mark.parametrize(
    ("kept", "made"),
    [
        (tensor("float32", 0.09228771, 3.0), tensor("float32", 0.09228769, 3.0)),
        (tensor("bfloat16", 1.0), tensor("bfloat16", 1.0078125)),
        ([{"a": 1, "b": 0.5}], [{"a": 1, "b": 0.5000001}]),
        (tensor("float32", 1e6), tensor("float32", 1e6 + 1)),
    ],
)
def test_last_bits_may_differ(kept, made):
    assert _agree(kept, made, TOLERANCE)


@pytest.mark.parametrize(
    ("kept", "made"),
    [
        (tensor("float32", 0.1), tensor("float32", 0.1001)),
        (tensor("float32", 1.0), tensor("bfloat16", 1.0)),
        (tensor("int32", 1), tensor("int32", 2)),
        (tensor("float32", 1.0), tensor("float32", 1.0, 1.0)),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"b": 1}),
        ({"a": True}, {"a": 1}),
        ([1], [1, 2]),
        ({"float": "nan"}, {"float": "inf"}),
        ("x", "y"),
    ],
)
def test_anything_else_is_out_of_date(kept, made):
    assert not _agree(kept, made, TOLERANCE)
