"""Diagnosis: a mistake is named when it explains the submission, and only then."""

import torch

from judge.core.case import Failure
from judge.core.compare import Comparer
from judge.core.diagnose import Diagnoser


def out(a, b, dtype=torch.int32):
    return {"a": torch.tensor(a, dtype=dtype), "b": torch.tensor(b, dtype=torch.int32)}


RIGHT = [out([0, 1], [5]), out([0, 2], [6]), out([0, 3], [7])]
MISTAKES = {
    "a_shifted": [out([1, 2], [5]), out([1, 3], [6]), out([1, 4], [7])],
    "a_only_on_last": [out([0, 1], [5]), out([0, 2], [6]), out([9, 9], [7])],
    "b_zero": [out([0, 1], [0]), out([0, 2], [0]), out([0, 3], [0])],
    "a_int64": [out([0, 1], [5], torch.int64), out([0, 2], [6], torch.int64), out([0, 3], [7], torch.int64)],
}


def names(outcomes, mistakes=MISTAKES):
    return [(f.kind, f.names) for f in Diagnoser(Comparer(), RIGHT, mistakes).diagnose(outcomes)]


def test_a_right_submission_has_no_diagnosis():
    assert names(RIGHT) == []


def test_every_mistake_is_named_as_itself():
    for name, outcomes in MISTAKES.items():
        assert names(outcomes) == [("mistake", (name,))]


def test_two_mistakes_in_different_fields_are_both_named():
    both = [out([1, 2], [0]), out([1, 3], [0]), out([1, 4], [0])]
    assert names(both) == [("mistake", ("a_shifted",)), ("mistake", ("b_zero",))]


def test_a_mistake_in_dtype_and_one_in_values_are_both_named():
    both = [out([1, 2], [5], torch.int64), out([1, 3], [6], torch.int64), out([1, 4], [7], torch.int64)]
    assert sorted(names(both)) == [("mistake", ("a_int64",)), ("mistake", ("a_shifted",))]


def test_a_passed_case_that_the_mistake_would_fail_rules_it_out():
    assert names([RIGHT[0], MISTAKES["a_shifted"][1], RIGHT[2]]) == []


def test_what_a_named_mistake_leaves_unexplained_is_said():
    mixed = [out([1, 2], [99]), out([1, 3], [6]), out([1, 4], [7])]
    assert names(mixed) == [("mistake", ("a_shifted",)), ("unexplained", ())]


def test_a_yes_or_no_that_is_wrong_in_the_same_places_names_no_mistake():
    right = [{"nodes": [1, 2], "intact": True}, {"nodes": [3, 4], "intact": True}]
    twice = [{"nodes": [1, 1], "intact": False}, {"nodes": [3, 3], "intact": False}]
    turned = [{"nodes": [2, 1], "intact": False}, {"nodes": [4, 3], "intact": False}]
    lie = [{"nodes": [1, 2], "intact": False}, {"nodes": [3, 4], "intact": False}]

    def diagnose(outcomes, known):
        return [(f.kind, f.names) for f in Diagnoser(Comparer(), right, known).diagnose(outcomes)]

    assert diagnose(twice, {"turned": turned}) == []
    assert diagnose(twice, {"turned": turned, "twice": twice}) == [("mistake", ("twice",))]
    assert diagnose(lie, {"lie": lie}) == [("mistake", ("lie",))]
    assert diagnose(twice, {"lie": lie}) == []


def test_it_is_said_whether_a_mistake_is_all_that_is_wrong():
    def params(outcomes):
        return [dict(f.params) for f in Diagnoser(Comparer(), RIGHT, MISTAKES).diagnose(outcomes)]

    assert params(MISTAKES["a_shifted"]) == [{}]
    assert params([out([1, 2], [0]), out([1, 3], [0]), out([1, 4], [0])]) == [{"part": True}] * 2


def test_partial_agreement_counts_cases_on_which_all_is_the_same():
    mixed = [out([1, 2], [99]), out([1, 3], [99]), out([7, 7], [7])]
    assert names(mixed) == []


def test_agreement_on_some_failing_cases_is_partial():
    mixed = [MISTAKES["a_shifted"][0], MISTAKES["a_shifted"][1], out([7, 7], [7])]
    assert names(mixed) == [("partial", ("a_shifted",))]
    finding = Diagnoser(Comparer(), RIGHT, MISTAKES).diagnose(mixed)[0]
    assert (finding.agreed, finding.failed) == (2, 3)


def test_mistakes_that_the_run_cases_cannot_tell_apart_are_a_tie():
    twins = {"one": MISTAKES["a_shifted"], "two": [*MISTAKES["a_shifted"][:2], out([8, 8], [7])]}
    assert names([*MISTAKES["a_shifted"][:2], None], twins) == [("tie", ("one", "two"))]
    diagnoser = Diagnoser(Comparer(), RIGHT, twins)
    assert diagnoser.alike(twins["one"][0], twins["two"][0])
    assert not diagnoser.alike(twins["one"][2], twins["two"][2])


def test_only_errors_of_the_fakes_and_the_engine_can_be_compared():
    def failing(code):
        return {"raises": [Failure("ValueError", code)] * 3}

    kernel, own = Failure("ValueError", "int64_indptr", line=4), Failure("ValueError", "", line=4)
    assert names([kernel] * 3, failing("int64_indptr")) == [("mistake", ("raises",))]
    assert names([kernel] * 3, failing("other_code")) == []
    assert names([own] * 3, failing("")) == []


def test_floats_must_be_nearer_the_mistake_than_the_answer():
    right = [{"y": torch.tensor([1.0, 2.0])}]
    mistakes = {"doubled": [{"y": torch.tensor([1.00002, 2.00004])}]}
    comparer = Comparer({"float32": 3e-5})
    nearer = Diagnoser(Comparer({"float32": 5e-6}), right, mistakes)
    assert [f.names for f in nearer.diagnose([{"y": torch.tensor([1.00002, 2.00004])}])] == [("doubled",)]
    between = Diagnoser(comparer, right, {"far": [{"y": torch.tensor([1.0, 2.0002])}]})
    assert between.diagnose([{"y": torch.tensor([1.0, 2.00015])}]) == []
