"""Every code has a sentence in both languages, with the same parameters."""

import re
import string

import pytest

from judge.core import wording
from judge.core.status import TRANSITIONS, VERDICTS, Status, check_transition
from judge.core.wording import say

PLACE = re.compile(r"{(\w+)}")
TABLES = [wording.SENTENCES, wording.HIDDEN_SENTENCES, wording.DIAGNOSES]


@pytest.mark.parametrize("table", TABLES, ids=["sentences", "hidden", "diagnoses"])
def test_both_languages_use_the_same_parameters(table):
    for code, texts in table.items():
        assert texts.keys() == {"zh", "en"}, code
        assert set(PLACE.findall(texts["zh"])) == set(PLACE.findall(texts["en"])), code
        assert all(list(string.Formatter().parse(t)) for t in texts.values()), code


def test_every_status_has_its_word():
    assert wording.STATUSES.keys() == set(Status)


def test_hidden_sentences_name_nothing_but_the_field():
    for code, texts in wording.HIDDEN_SENTENCES.items():
        assert code in wording.SENTENCES
        assert set(PLACE.findall(texts["en"])) <= {"field"}


def test_the_caret_stands_under_the_column():
    params = {"line": 2, "column": 11, "text": "    x = (1\n", "reason": "'(' was never closed"}
    lines = say({"code": "syntax_error", "params": params}, "en").splitlines()
    assert lines[1] == "    x = (1"
    assert lines[2] == "          ^"
    wide = {"line": 1, "column": 7, "text": "中文 = (1", "reason": "'(' was never closed"}
    lines = say({"code": "syntax_error", "params": wide}, "zh").splitlines()
    assert lines[2] == "    　　    ^"


def test_a_learners_braces_are_no_template():
    said = say(
        {"code": "exception", "params": {"type": "ValueError", "line": 3, "text": "{type.__class__} {0}"}},
        "en",
    )
    assert said == "ValueError raised in line 3: {type.__class__} {0}"


def test_from_a_final_status_only_a_rejudge_leads_on():
    assert all(TRANSITIONS[s] == {Status.QUEUED} for s in VERDICTS)
    assert all(TRANSITIONS[s] == frozenset() for s in Status if s.is_final and s not in VERDICTS)
    assert TRANSITIONS[Status.RUNNING] >= VERDICTS
    check_transition(Status.RUNNING, Status.QUEUED)
    with pytest.raises(ValueError, match="accepted cannot become running"):
        check_transition(Status.ACCEPTED, Status.RUNNING)


def test_a_result_that_is_none_is_mostly_a_forgotten_return():
    def said(field):
        return say({"code": "type", "field": field, "params": {"expected": "int", "got": "NoneType"}}, "en")

    assert said("result") == "result: expected int, got None (does the function return anything?)"
    assert said("result[1]") == "result[1]: expected int, got None"
    none = {"code": "output_count", "params": {"expected": 2, "names": "a, b", "got": "NoneType"}}
    assert say(none, "zh") == "应返回 2 个值（a, b），得到 None（函数没有 return 吗？）"


def test_an_unsupported_type_of_a_hidden_case_is_not_named():
    assert say({"code": "unsupported_type", "params": {}}, "zh") == "返回值里有判题不接受的类型。"


def test_a_mistake_in_some_fields_says_in_which():
    params = {"agreed": 1, "failed": 2}
    entry = {"kind": "mistake", "fields": ["a"], "params": params, "text": {"en": "no."}}
    assert wording.say_diagnosis(entry, "en").startswith("Your output is exactly")
    params["part"] = True
    assert wording.say_diagnosis(entry, "en").startswith("Your a is exactly")


def test_partial_agreement_speaks_of_other_cases_only_if_there_are_any():
    entry = {"kind": "partial", "fields": [], "params": {"agreed": 2, "failed": 3}, "text": {"en": "no."}}
    assert wording.say_diagnosis(entry, "en").endswith(": no. In the others something else is wrong.")
    entry["params"] = {"agreed": 3, "failed": 3}
    assert wording.say_diagnosis(entry, "en").startswith("On all 3 of 3 failing cases")
    assert wording.say_diagnosis(entry, "en").endswith("so that is not quite it: no.")
