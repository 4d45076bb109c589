"""The self-test: its attacks work where there are no doors, and are held where there are."""

import json
import time

import pytest

from judge import selftest
from judge.core.status import Status
from judge.judge import Judge, NoTier
from judge.sandbox.client import Zygote
from judge.sandbox.local import LocalStage, LocalZygote
from judge.selftest import ATTACKS, ISOLATING, TierReport, try_tier


@pytest.fixture(scope="module")
def zygote():
    zygote = Zygote("test")
    yield zygote
    zygote.close()


@pytest.mark.parametrize("tier", ISOLATING)
def test_isolating_tiers_stand_up_to_every_attack(zygote, tier):
    report = try_tier(zygote, tier)
    assert report.error == ""
    assert [f for f in report.findings if f.got] == []
    assert [f.attack for f in report.findings] == list(ATTACKS)


def test_every_attack_gets_somewhere_where_nothing_isolates():
    """Else an attack that is broken would pass for a door that holds."""
    report = try_tier(LocalZygote("test", reuse=False), "local")
    harmless = {f.attack for f in report.findings if not f.got}
    assert harmless <= {"memory", "what is left lying about"}, report
    assert not report.ok
    assert "read files" in report.reason


def test_a_judge_takes_the_best_tier_that_holds(monkeypatch, packages):
    def only_medium(zygote, tier):
        return TierReport(tier, "" if tier == "medium" else "unshare: Operation not permitted", ())

    monkeypatch.setattr(selftest, "try_tier", only_medium)
    with Judge() as judge:
        verdict = judge.judge(packages[201], packages[201].solution.encode(), bytes(16))
        assert (judge.tier, verdict.tier, verdict.status) == ("medium", "medium", Status.ACCEPTED)


def test_a_zygote_that_is_not_ready_ends_at_once():
    zygote = Zygote("test")
    began = time.monotonic()
    zygote.close()
    assert time.monotonic() - began < 1.0  # it has seconds of torch before it
    assert not zygote.alive


def test_without_a_tier_that_holds_nothing_is_judged(monkeypatch, packages):
    monkeypatch.setattr(selftest, "try_tier", lambda zygote, tier: TierReport(tier, "unshare: no", ()))
    with Judge() as judge, pytest.raises(NoTier, match="strong: unshare: no; medium: unshare: no"):
        judge.judge(packages[200], packages[200].solution.encode(), bytes(16))


def test_tier_local_judges_alike(packages, monkeypatch):
    made = []
    make = LocalStage.make
    monkeypatch.setattr(LocalStage, "make", lambda stage, limits: made.append(stage) or make(stage, limits))
    with Judge(tiers=("local",)) as judge:
        for number in (200, 201):
            package = packages[number]
            good = judge.judge(package, package.solution.encode(), bytes(16))
            assert (good.status, good.tier, good.passed) == (Status.ACCEPTED, "local", 20)
            name, wrong = next(iter(package.wrong.items()))
            bad = judge.judge(package, wrong.source.encode(), bytes(16))
            assert bad.status is Status.WRONG_ANSWER
            assert [e["names"] for e in bad.diagnosis] == [[name]]
        # Starting one for each known mistake took most of the time of the first wrong answer.
        assert sum(stage.reuse for stage in made) == 2, (
            "a problem's reference and its mistakes share a process"
        )
        head = "import torch\ndef flashinfer_metadata(reqs, page_table, page_size):\n    "
        endings = {
            "while True: pass": Status.TIME_LIMIT,
            "while True: print('x' * 1000)": Status.OUTPUT_LIMIT,
            "import os; os._exit(0)": Status.RUNTIME_ERROR,
            "return bytearray(1 << 31)": Status.MEMORY_LIMIT,
        }
        for line, status in endings.items():
            verdict = judge.judge(packages[200], (head + line).encode(), bytes(16))
            assert verdict.status is status, (line, json.dumps(verdict.to_json()))
        again = judge.judge(packages[200], packages[200].solution.encode(), bytes(16))
        assert again.status is Status.ACCEPTED
