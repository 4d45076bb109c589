"""How values are written for people."""

import json

import pytest
import torch

from judge.core.values import MOST_SHOWN, display_outputs, float_text
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


def test_outputs_are_shown_whole_up_to_a_length_and_then_in_a_word():
    small = torch.arange(3)
    many = [torch.zeros(2000) for _ in range(11)]
    shown = display_outputs({"small": small, "many": many, "after": small, "n": 7})
    assert shown["small"]["tensor"]["data"] == [0, 1, 2]
    assert shown["many"] == "list [11] …"
    assert shown["after"] == "int64 [3] …"
    assert shown["n"] == 7


@pytest.mark.parametrize(
    "outputs",
    [
        {"result": ["x" * 6000] * 4},
        {"result": {"x" * 6000 + str(i): 1 for i in range(4)}},
        {"result": ({"a": [torch.zeros(300) for _ in range(100)]},)},
        {f"name {i}": "y" * 900 for i in range(2000)},
        {"k" * 190 + str(i): True for i in range(5000)},
    ],
)
def test_what_is_shown_of_an_output_is_bounded_however_it_is_cut_up(outputs):
    assert len(json.dumps(display_outputs(outputs))) < 20 * MOST_SHOWN


def test_names_of_outputs_are_the_submissions_words_and_cleaned():
    assert list(display_outputs({"a\x1b\u202e": 1})) == ["a\ufffd\ufffd"]
