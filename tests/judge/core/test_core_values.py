"""How values are written for people."""

import pytest

from judge.core.values import float_text
from judge.core.verdict import Mismatch
from judge.core.wording import say_mismatch


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (-0.02729688, "-0.0272969"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e20, "1e+20"),
        (123456789.0, "1.23457e+08"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_floats_are_written_for_people(value, text):
    assert float_text(value) == text


def test_two_floats_that_look_alike_are_told_apart():
    params = {"expected": 0.12345678, "got": 0.12345679}
    assert say_mismatch(Mismatch("value", "x", params), "en") == "x: expected 0.12345678, got 0.12345679"
    params = {"expected": 0.12345678, "got": 2.0}
    assert say_mismatch(Mismatch("value", "x", params), "en") == "x: expected 0.123457, got 2.0"


def test_a_string_is_told_with_its_quotes():
    params = {"expected": "", "got": " a"}
    assert say_mismatch(Mismatch("value", "x", params), "en") == "x: expected '', got ' a'"
    params = {"expected": "nan", "got": 1.0}
    assert say_mismatch(Mismatch("value", "x", params), "en") == "x: expected nan, got 1.0"
