"""What the site forgets, and what it must not."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from sqlalchemy import select, update

from judge.store import Judgement, Submission
from web import retention
from web.accounts.tables import AuditEntry, Role, User
from web.api import tokens
from web.manage import main

DAY = 24 * 3600.0


@pytest.fixture
def age(store):
    def make(days: float) -> None:
        with store.write() as session:
            session.execute(update(Submission).values(created_at=Submission.created_at - days * DAY))
            session.execute(update(User).values(created_at=User.created_at - days * DAY))
            session.execute(update(User).values(last_seen_at=User.last_seen_at - days * DAY))

    return make


def numbers(store) -> list[int]:
    with store.read() as session:
        return list(session.scalars(select(Submission.id)))


def test_old_submissions_go_with_their_verdicts_and_classes_keep_theirs(school, store, judged, age):
    in_class, outside = judged("u2", 40), judged("u4", 40)
    age(100)
    young = judged("u4", 40)
    assert retention.old_submissions(store, 50, dry=True, actor="x") == 1
    assert numbers(store) == [in_class, outside, young]
    assert retention.old_submissions(store, 50, dry=False, actor="x") == 1
    assert numbers(store) == [in_class, young]
    with store.read() as session:
        assert set(session.scalars(select(Judgement.submission))) == {in_class, young}
        assert (
            session.scalars(select(AuditEntry.action).order_by(AuditEntry.id.desc())).first()
            == "submissions_forgotten"
        )
    school.teacher.post(f"{school.path}/archive", {}, page=school.path)
    assert retention.old_submissions(store, 50, dry=False, actor="x") == 1
    assert numbers(store) == [young]


def test_what_waits_is_not_forgotten(school, store, age):
    school.outsider.post("/problems/40/submissions", {"source": "x"}, page="/problems/40")
    age(100)
    assert retention.old_submissions(store, 50, dry=False, actor="x") == 0


def test_accounts_that_nobody_uses_go(app, school, store, person, age, judged):
    person("gone")
    person("teacher2", Role.TEACHER)
    judged("u5", 40)
    age(100)
    person("new")
    with app.test_request_context():
        assert retention.unused_accounts(store, 50, dry=True, actor="x") == ["gone"]
        assert retention.unused_accounts(store, 50, dry=False, actor="x") == ["gone"]
    with store.read() as session:
        assert set(session.scalars(select(User.login))) == {"tess", "ada", "ben", "olaf", "teacher2", "new"}
    assert numbers(store) == []


def test_who_submits_or_has_a_program_that_does_uses_the_account(app, store, school, person, age, judged):
    submits, has_token, _gone = person("submits"), person("token"), person("gone")
    with app.test_request_context(), store.write() as session:
        token, _text = tokens.make(session, session.get_one(User, has_token.id), name="x", days=365)
    age(100)
    judged(submits.key)
    with store.write() as session:
        tokens.used(session, token.id)
    with app.test_request_context():
        assert retention.unused_accounts(store, 50, dry=False, actor="x") == ["gone"]


def test_many_go_in_batches(store, school, judged, age, monkeypatch):
    for _ in range(7):
        judged("u4", 40)
    age(100)
    monkeypatch.setattr(retention, "BATCH", 3)
    assert retention.old_submissions(store, 50, dry=False, actor="x") == 7
    with store.read() as session:
        said = session.scalars(
            select(AuditEntry.detail).where(AuditEntry.action == "submissions_forgotten")
        ).all()
    assert [d["count"] for d in said] == [3, 3, 1], "each with the transaction that it tells of"


@pytest.mark.parametrize(
    "arguments", [[], ["--submissions", "0"], ["--accounts", "-5"], ["--submissions", "soon"]]
)
def test_the_command_says_what_it_needs(arguments):
    assert CliRunner().invoke(main, ["forget", *arguments]).exit_code == 2


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path))
    result = CliRunner().invoke(main, ["forget", "--submissions", "10", "--accounts", "10", "--dry-run"])
    assert result.output == "0 submissions would be forgotten\n0 accounts would be deleted\n"
    assert CliRunner().invoke(main, ["reset", "nobody"]).exit_code == 1
