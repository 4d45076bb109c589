"""The contract of the queue: who holds a submission, and what an old holder can no longer do."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, select, update

from judge.core.status import TRANSITIONS, Status
from judge.store import CaseProgress, Judgement, Queue, Submission, reading
from judge.store.clock import now
from judge.store.queue import LEASE_S

CASE = {"name": "hidden", "group": "hidden", "status": "accepted", "time_ms": 0, "message": None}


def row(store, number):
    with store.read() as session:
        return session.scalars(select(Submission).where(Submission.id == number)).one()


def expire(store, number):
    """Let the lease run out: by the database's clock it did a second ago."""
    with store.write() as session:
        session.execute(update(Submission).where(Submission.id == number).values(lease_until=now() - 1.0))


def test_what_is_submitted_is_kept_byte_for_byte(store, queue, submit):
    raw = b"\xef\xbb\xbfdef f():\r\n\tpass \xff\x00"
    assert row(store, submit(source=raw)).source == raw


def test_every_submission_has_a_seed_of_its_own(store, submit):
    seeds = {row(store, submit()).seed for _ in range(20)}
    assert len(seeds) == 20
    assert {len(s) for s in seeds} == {16}


def test_claims_come_in_order_and_each_once(queue, submit):
    numbers = [submit() for _ in range(5)]
    claims = [queue.claim("w") for _ in range(6)]
    assert [c.submission for c in claims[:5]] == numbers
    assert claims[5] is None


def test_a_claim_has_a_lease_by_the_databases_clock(store, queue, submit):
    number = submit()
    queue.claim("w1")
    held = row(store, number)
    assert (held.status, held.worker, held.attempt) == ("running", "w1", 1)
    with store.read() as session:
        assert session.scalar(select(now())) + LEASE_S == pytest.approx(held.lease_until, abs=1.0)


def test_a_heartbeat_renews_the_lease(store, queue, submit):
    number = submit()
    claim = queue.claim("w")
    expire(store, number)
    assert queue.heartbeat(claim)
    assert queue.recover() == 0
    assert row(store, number).status == "running"


def test_finishing_appends_a_judgement_and_points_at_it(store, queue, submit, verdict):
    number = submit()
    claim = queue.claim("w")
    queue.progress(claim, 1, [CASE])
    assert queue.finish(claim, verdict)
    with store.read() as session:
        found = reading.find(session, "local", number)
        assert found.status is Status.ACCEPTED
        assert found.verdict == verdict
        assert found.finished_at >= found.created_at
        assert session.scalars(select(CaseProgress)).all() == []


def test_a_second_finish_changes_nothing(store, queue, submit, verdict):
    number = submit()
    claim = queue.claim("w")
    assert queue.finish(claim, verdict)
    assert not queue.finish(claim, verdict | {"status": "wrong_answer"})
    assert row(store, number).status == "accepted"
    with store.read() as session:
        assert len(session.scalars(select(Judgement)).all()) == 1


def test_an_old_attempt_changes_nothing(store, queue, submit, verdict):
    number = submit()
    old = queue.claim("w1")
    expire(store, number)
    assert queue.recover() == 1
    new = queue.claim("w2")
    assert new.attempt == old.attempt + 1
    assert not queue.heartbeat(old)
    assert not queue.started(old, 20)
    assert not queue.progress(old, 1, [CASE])
    assert not queue.release(old)
    assert not queue.finish(old, verdict | {"status": "wrong_answer"})
    held = row(store, number)
    assert (held.status, held.worker, held.total) == ("running", "w2", None)
    assert queue.finish(new, verdict)


def test_a_late_worker_changes_nothing_of_another_submission_of_that_number(store, queue, submit, verdict):
    number = submit("gone")
    old = queue.claim("w1")
    with store.write() as session:
        session.execute(delete(Submission).where(Submission.id == number))
    another = submit("ada")
    with store.write() as session:  # as in a database that was put back from a copy
        session.execute(update(Submission).where(Submission.id == another).values(id=number))
    new = queue.claim("w2")
    assert new.attempt == old.attempt
    assert not queue.heartbeat(old)
    assert not queue.started(old, 20)
    assert not queue.progress(old, 1, [CASE])
    assert not queue.release(old)
    assert not queue.finish(old, verdict)
    assert row(store, number).status == "running"
    assert queue.finish(new, verdict)


def test_a_lease_lost_before_a_child_started_is_no_crash(store, queue, submit):
    number = submit()
    for _ in range(5):
        assert not queue.claim("w").alone
        expire(store, number)
        queue.recover()
    assert (row(store, number).crashes, row(store, number).status) == (0, "queued")


def test_after_one_crash_it_runs_alone_and_after_three_it_is_given_up(store, queue, submit):
    number = submit()
    for crashes in range(3):
        claim = queue.claim("w")
        assert claim.alone is (crashes > 0)
        queue.started(claim, 20)
        expire(store, number)
        assert queue.recover() == 1
    with store.read() as session:
        found = reading.find(session, "local", number)
    assert found.status is Status.SYSTEM_ERROR
    assert found.crashes == 3
    assert found.verdict["message"] == {"code": "worker_lost", "params": {"crashes": 3}}
    assert queue.claim("w") is None


def test_what_is_handed_back_is_queued_again_without_a_crash(store, queue, submit):
    number = submit()
    claim = queue.claim("w")
    queue.started(claim, 20)
    assert queue.release(claim)
    given = row(store, number)
    assert (given.status, given.crashes, given.worker, given.lease_until) == ("queued", 0, None, None)
    assert queue.claim("w2").attempt == 2


def test_progress_of_a_lost_attempt_is_gone_with_the_next_claim(store, queue, submit):
    number = submit()
    claim = queue.claim("w")
    assert queue.progress(claim, 1, [CASE, CASE])
    with store.read() as session:
        assert [seq for seq, _ in reading.progress(session, number, 1, 0)] == [1, 2]
        assert [seq for seq, _ in reading.progress(session, number, 1, 1)] == [2]
    expire(store, number)
    queue.recover()
    queue.claim("w")
    with store.read() as session:
        assert session.scalars(select(CaseProgress)).all() == []


@pytest.mark.parametrize("final", sorted(s for s in Status if s.is_final))
def test_nothing_leaves_a_final_status(store, submit, verdict, final):
    number = submit()
    with store.write() as session:
        session.execute(
            update(Submission).where(Submission.id == number).values(status=str(final), attempt=1)
        )
    queue = Queue(store)
    assert TRANSITIONS[final] <= {Status.QUEUED}, "by a rejudge only"
    assert queue.claim("w") is None
    assert queue.recover() == 0
    assert row(store, number).status == str(final)


def test_another_users_submission_is_not_found(store, submit):
    number = submit(user="somebody")
    with store.read() as session:
        assert reading.find(session, "local", number) is None
        assert reading.history(session, "local") == []
        assert reading.find(session, "somebody", number) is not None


def test_a_run_over_public_cases_solves_nothing(store, queue, submit, verdict):
    submit(public_only=True)
    queue.finish(queue.claim("w"), verdict)
    with store.read() as session:
        assert reading.standing(session, "local") == {}
    submit()
    queue.finish(queue.claim("w"), verdict)
    submit()
    queue.finish(queue.claim("w"), verdict | {"status": "wrong_answer"})
    with store.read() as session:
        assert reading.standing(session, "local") == {200: True}


def test_the_place_in_line_counts_those_before(store, queue, submit):
    numbers = [submit() for _ in range(3)]
    queue.claim("w")
    with store.read() as session:
        assert [reading.find(session, "local", n).ahead for n in numbers] == [0, 0, 1]


def test_what_waits_is_cancelled_and_never_claimed(store, queue, submit):
    number = submit()
    assert queue.cancel("local", number)
    ended = row(store, number)
    assert (ended.status, ended.attempt, ended.worker) == ("cancelled", 0, None)
    assert ended.finished_at >= ended.created_at
    assert queue.claim("w") is None
    assert not queue.cancel("local", number)


def test_a_running_one_is_cancelled_and_its_worker_can_say_no_more(store, queue, submit, verdict):
    number = submit()
    claim = queue.claim("w")
    queue.started(claim, 20)
    queue.progress(claim, 1, [CASE])
    assert queue.cancel("local", number)
    assert not queue.heartbeat(claim)
    assert not queue.started(claim, 20)
    assert not queue.progress(claim, 2, [CASE])
    assert not queue.release(claim)
    assert not queue.finish(claim, verdict)
    assert queue.recover() == 0
    with store.read() as session:
        assert session.scalars(select(Judgement)).all() == []
        assert session.scalars(select(CaseProgress)).all() == []
        assert reading.find(session, "local", number).status is Status.CANCELLED


def test_only_ones_own_is_cancelled_and_only_before_it_ended(store, queue, submit, verdict):
    theirs = submit(user="somebody")
    assert not queue.cancel("local", theirs)
    assert not queue.cancel("local", theirs + 1)
    assert row(store, theirs).status == "queued"
    assert queue.finish(queue.claim("w"), verdict)
    assert not queue.cancel("somebody", theirs)
    assert row(store, theirs).status == "accepted"
