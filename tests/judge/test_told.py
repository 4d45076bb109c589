"""What may be told of a hidden case that ended: nothing that a submission can choose freely."""

from __future__ import annotations

import signal

import pytest

from judge.core.verdict import Message
from judge.sandbox.process import signal_name
from judge.told import UNSUPPORTED, redacted_ending, reported_failure


@pytest.mark.parametrize("number", range(1, 65))
def test_a_signal_that_a_program_sends_itself_says_nothing(number):
    told = redacted_ending(Message("killed_by_signal", {"signal": signal_name(number)}))
    faults = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGKILL)
    if number in faults:
        assert told.params == {"signal": signal_name(number)}
    else:
        assert told == Message("ended_without_result")


def test_no_number_of_a_hidden_ending_is_the_submissions():
    assert redacted_ending(Message("ended_early", {"exit": 77})) == Message("ended_without_result")
    told = redacted_ending(Message("reply_too_large", {"size": 123_456, "limit": 1000}))
    assert told == Message("reply_over_limit", {"limit": 1000})
    told = redacted_ending(Message("cpu_limit", {"used_ms": 503, "limit_ms": 500}))
    assert told.params == {"used_ms": 500, "limit_ms": 500}


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\u202e", "\0", "x\0y", "\ud800", "A" * 100_000])
@pytest.mark.parametrize("key", ["field", "type", "text"])
def test_every_word_of_a_report_is_cleaned_whatever_it_is_part_of(key, hostile):
    told = {"field": "f", "type": "t", "text": "x", key: hostile}
    plain = reported_failure({"type": "ValueError", "line": 1, "code": "", "text": told["text"]})
    unsupported = reported_failure({"unsupported": {"field": told["field"], "type": told["type"]}})
    assert unsupported.type == UNSUPPORTED
    field, name = unsupported.text.split("\0")
    for word in (plain.text, field, name):
        assert word.isprintable()
        assert len(word) <= 500
