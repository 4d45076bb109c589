"""Whose turn it is, and judging again."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from judge.core.status import Status
from judge.store import Judgement, Queue, Submission, TooManyQueued, reading
from judge.store.clock import now
from judge.store.tables import Share


def take(queue, verdict, store, seconds: float = 1.0):
    """Claim, pretend that judging took `seconds`, finish; the user whose turn it was."""
    claim = queue.claim("w")
    with store.write() as session:
        at = session.scalars(select(now())).one()
        session.execute(
            update(Submission).where(Submission.id == claim.submission).values(claimed_at=at - seconds)
        )
    assert queue.finish(claim, verdict)
    with store.read() as session:
        return session.get_one(Submission, claim.submission).user


def virtual(store, user: str) -> float:
    with store.read() as session:
        return session.get_one(Share, user).virtual_s


@pytest.fixture
def wide(store) -> Queue:
    return Queue(store, most_queued=1000)


def put(queue, user: str, n: int = 1) -> list[int]:
    return [queue.submit(user=user, problem=200, version="0123456789abcdef", source=b"x") for _ in range(n)]


def test_a_flood_delays_another_by_one(wide, store, verdict):
    put(wide, "flood", 200)
    for _ in range(5):
        take(wide, verdict, store)
    running = wide.claim("w")
    put(wide, "ada")
    assert take(wide, verdict, store) == "ada", "right after what runs at that moment"
    assert running is not None


def test_turns_are_shared_by_time_not_by_number(wide, store, verdict):
    put(wide, "slow", 30)
    put(wide, "quick", 30)
    order = []
    for _ in range(40):
        with store.read() as session:
            following = session.scalars(select(Submission.user).where(Submission.status == "queued")).all()
        assert following
        order.append(None)
        claim = wide.claim("w")
        with store.write() as session:
            row = session.get_one(Submission, claim.submission)
            order[-1] = row.user
            seconds = 4.0 if row.user == "slow" else 1.0
            at = session.scalars(select(now())).one()
            session.execute(update(Submission).where(Submission.id == row.id).values(claimed_at=at - seconds))
        wide.finish(claim, verdict)
    assert 6 <= order.count("slow") <= 10, "a fifth of the turns, half of the time"


def test_turns_cannot_be_saved_up(wide, store, verdict):
    put(wide, "sleeper")
    take(wide, verdict, store)
    put(wide, "busy", 60)
    for _ in range(50):
        take(wide, verdict, store)
    put(wide, "sleeper", 10)
    order = [take(wide, verdict, store) for _ in range(10)]
    assert 4 <= order.count("sleeper") <= 6


def test_a_newcomer_starts_where_the_others_are(wide, store, verdict):
    put(wide, "busy", 30)
    for _ in range(20):
        take(wide, verdict, store)
    put(wide, "new", 10)
    order = [take(wide, verdict, store) for _ in range(10)]
    assert 4 <= order.count("busy") <= 6, "who came first is not kept out by who has had nothing"


def test_judging_again_makes_nobody_active(wide, store, verdict):
    (old,) = put(wide, "idle")
    take(wide, verdict, store, 2.0)
    put(wide, "busy", 30)
    for _ in range(20):
        take(wide, verdict, store, 5.0)
    again(wide, [old], {200: "f" * 16})
    put(wide, "new")
    put(wide, "idle")
    least = virtual(store, "busy")
    assert virtual(store, "new") == virtual(store, "idle") == pytest.approx(least)


@pytest.mark.parametrize("end", ["cancel", "lost"])
def test_what_did_not_finish_is_charged_too(store, verdict, end):
    queue = Queue(store, lease_s=-1.0 if end == "lost" else 15.0)
    (number,) = put(queue, "ada")
    queue.claim("w")
    with store.write() as session:
        at = session.scalars(select(now())).one()
        session.execute(update(Submission).where(Submission.id == number).values(claimed_at=at - 9.0))
    assert queue.recover() == 1 if end == "lost" else queue.cancel("ada", number)
    assert 8.9 < virtual(store, "ada") < 9.5


def test_what_is_handed_back_costs_nothing(queue, store):
    put(queue, "ada")
    queue.release(queue.claim("w"))
    assert virtual(store, "ada") == 0.0


def test_a_claim_that_is_over_does_not_queue_again(queue, store, verdict):
    put(queue, "ada")
    claim = queue.claim("w")
    queue.finish(claim, verdict)
    assert not queue.release(claim)
    assert queue.claim("w") is None


def test_only_so_many_wait(store):
    queue = Queue(store, most_queued=3)
    numbers = put(queue, "ada", 3)
    with pytest.raises(TooManyQueued):
        put(queue, "ada")
    put(queue, "ben")
    assert queue.cancel("ada", numbers[0])
    put(queue, "ada")


def test_the_place_in_line_knows_whose_turn_it_is(wide, store, verdict):
    flood = put(wide, "flood", 10)
    take(wide, verdict, store)
    (mine,) = put(wide, "ada")
    with store.read() as session:
        assert reading.find(session, "ada", mine).ahead <= 1
        places = [reading.find(session, "flood", n).ahead for n in flood[1:]]
    assert sorted(places) == places
    assert places[-1] == 9


def test_judging_again_comes_last_and_keeps_what_counted(queue, store, verdict):
    (old,) = put(queue, "ada")
    queue.finish(queue.claim("w"), verdict)
    before = _row(store, old)
    assert again(queue, [old], {200: "f" * 16}) == 1
    put(queue, "ben")
    with store.read() as session:
        assert reading.standing(session, "ada") == {200: True}, "the old verdict counts meanwhile"
        assert reading.is_solved(session, "ada", 200)
        found, (listed,) = reading.find(session, "ada", old), reading.history(session, "ada")
    assert (found.status, found.passed, found.again, found.ahead) == ("accepted", 1, True, 0)
    assert (listed.status, listed.passed, listed.again) == ("accepted", 1, True)
    assert listed.finished_at == pytest.approx(before.finished_at, abs=5), (
        "when the verdict that counts was found"
    )
    assert take(queue, verdict, store) == "ben"
    claim = queue.claim("w")
    assert (claim.submission, claim.version, claim.seed) == (old, "f" * 16, before.seed)
    queue.finish(claim, verdict | {"status": "wrong_answer", "passed": 0})
    with store.read() as session:
        assert not reading.find(session, "ada", old).again
    after = _row(store, old)
    assert (after.status, after.created_at) == ("wrong_answer", before.created_at)
    assert after.current_judgement != before.current_judgement
    with store.read() as session:
        kept = session.scalars(
            select(Judgement.status).order_by(Judgement.id).where(Judgement.submission == old)
        ).all()
    assert kept == ["accepted", "wrong_answer"], "append-only"


def test_a_fault_while_judging_again_changes_no_verdict(queue, store, verdict):
    (old,) = put(queue, "ada")
    queue.finish(queue.claim("w"), verdict)
    counted = _row(store, old).current_judgement
    again(queue, [old], {200: "f" * 16})
    queue.finish(queue.claim("w"), verdict | {"status": "system_error", "passed": 0})
    after = _row(store, old)
    assert (after.status, after.current_judgement) == ("accepted", counted)
    with store.read() as session:
        assert len(session.scalars(select(Judgement)).all()) == 2, "but it is on record"


def test_judging_again_charges_nobody_and_is_not_theirs_to_cancel(queue, store, verdict):
    (old,) = put(queue, "ada")
    take(queue, verdict, store, 2.0)
    charged = virtual(store, "ada")
    again(queue, [old], {200: "f" * 16})
    assert not queue.cancel("ada", old)
    take(queue, verdict, store, 5.0)
    assert virtual(store, "ada") == charged


def test_only_what_has_a_verdict_is_judged_again(queue, store, verdict):
    waiting, cancelled = put(queue, "ada", 2)
    queue.cancel("ada", cancelled)
    assert again(queue, [waiting, cancelled, 999], {200: "f" * 16}) == 0
    queue.finish(queue.claim("w"), verdict)
    assert again(queue, [waiting], {201: "f" * 16}) == 0, "another problem's version"
    assert _row(store, cancelled).status == Status.CANCELLED


def test_what_can_be_judged_again_is_what_has_a_verdict(queue, store, verdict):
    numbers = put(queue, "ada", 4)
    queue.cancel("ada", numbers[0])
    for _ in range(2):
        queue.finish(queue.claim("w"), verdict)
    with store.read() as session:
        assert reading.with_verdicts(session, 200) == numbers[1:3]
        assert reading.with_verdicts(session, 201) == []


def test_a_rejudge_that_is_not_written_down_is_none(queue, store, verdict):
    (old,) = put(queue, "ada")
    queue.finish(queue.claim("w"), verdict)

    def fails() -> None:
        with store.write() as session:
            assert queue.rejudge(session, {200: "f" * 16}, [old]) == 1
            raise OSError("the log cannot be written")

    with pytest.raises(OSError, match="log"):
        fails()
    assert _row(store, old).status == "accepted"


def test_a_replay_goes_by_the_verdict_that_counts(queue, store, verdict):
    (old,) = put(queue, "ada")
    with store.read() as session:
        assert reading.judged_by(session, old) is None
    first = queue.claim("w")
    queue.finish(first, verdict | {"version": first.version})
    again(queue, [old], {200: "f" * 16})
    queue.finish(queue.claim("w"), verdict | {"status": "system_error", "version": "f" * 16})
    assert _row(store, old).version == "f" * 16
    with store.read() as session:
        assert reading.judged_by(session, old) == first.version


def again(queue: Queue, submissions: list[int], versions: dict[int, str]) -> int:
    with queue.store.write() as session:
        return queue.rejudge(session, versions, submissions)


def _row(store, number: int) -> Submission:
    with store.read() as session:
        return session.get_one(Submission, number)
