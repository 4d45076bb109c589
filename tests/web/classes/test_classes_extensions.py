"""A deadline of one's own: what follows it, who may give it, what it never does."""

from __future__ import annotations

import csv
import io

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, select, text, update

from judge.store import Store, Submission
from judge.store.database import MIGRATIONS
from web.accounts.tables import AuditEntry
from web.classes.extensions import times
from web.classes.tables import Assignment, Extension
from web.classes.times import to_seconds

ZONE = "Asia/Shanghai"
OVER = {
    "title": "Week 1",
    "opens": "2020-01-01T00:00",
    "deadline": "2021-01-01T23:59",
    "late_percent": "50",
    "problem": "40",
    "points-40": "10",
}


@pytest.fixture
def over(school):
    """The path of an assignment of problem 40 whose deadline has passed."""

    def make(**more):
        data = {**OVER, **more}
        return school.teacher.post(f"{school.path}/assignments/new", data, page=school.path).location

    return make


def extend(school, path, deadline, user=2):
    return school.teacher.post(f"{path}/grades/{user}/deadline", {"deadline": deadline}, page=school.path)


def made(**more):
    fields = {"opens_at": 0.0, "deadline_at": 1000.0, "late_until": 1500.0, "references_at": 1200.0, **more}
    return Assignment(title="x", class_id=1, **fields)


@pytest.mark.parametrize(
    ("assignment", "own", "found"),
    [
        (made(), None, (1000, 1500, 1200, False)),
        (made(), 1600.0, (1600, 2100, 1800, True)),
        (made(late_until=None, references_at=None), 1600.0, (1600, None, None, True)),
        (made(references_at=1000.0), 1600.0, (1600, 2100, 1600, True)),
        (made(references_at=999.0), 1600.0, (1600, 2100, 999, True)),
        (made(), 900.0, (1000, 1500, 1200, False)),
    ],
)
def test_all_that_comes_after_the_deadline_moves_with_it(assignment, own, found):
    mine = times(assignment, own)
    assert (mine.deadline_at, mine.late_until, mine.references_at, mine.extended) == found


def test_points_follow_it_for_that_learner_alone(school, over, judged, app):
    path = over()
    for user in ("u2", "u3"):
        judged(user, 40)
    rows = lambda: list(  # noqa: E731
        csv.reader(io.StringIO(school.teacher.get(f"{path}/grades.csv").data.decode("utf-8-sig")))
    )
    assert [r[2] for r in rows()[1:]] == ["0.0", "0.0"]
    assert path not in school.ada.get("/").text
    answer = extend(school, path, "2098-01-01T12:00")
    assert answer.status_code == 303, answer.text
    assert [(r[2], r[-1]) for r in rows()[1:]] == [
        ("10.0", "2098-01-01 12:00 (Asia/Shanghai)"),
        ("0.0", "2021-01-01 23:59 (Asia/Shanghai)"),
    ]
    book = school.teacher.get(f"{path}/grades").text
    assert book.count(">extended<") == 1
    for page in ("/", school.path, path, "/problems/40"):
        shown = school.ada.get(page).text
        assert "2098-01-01 12:00 (Asia/Shanghai)" in shown, page
        assert "2098-01-01 12:00" not in school.ben.get(page).text, page
    mine = school.ada.get(path).text
    assert "for all: 2021-01-01 23:59 (Asia/Shanghai)" in mine
    assert "it no longer counts" not in mine
    assert "it no longer counts" in school.ben.get(path).text


def test_the_late_time_follows_it(school, over, judged, store):
    path = over(deadline="2021-01-01T00:00", late_until="2021-01-03T00:00")
    number = judged("u2", 40)
    extend(school, path, "2022-01-01T00:00")

    def points_at(local):
        with store.write() as session:
            at = to_seconds(local, ZONE)
            session.execute(update(Submission).where(Submission.id == number).values(created_at=at))
            session.execute(text("UPDATE members SET joined_at = 0"))
        return school.teacher.get(f"{path}/grades").text.split("ada</code></td>")[1][:40]

    assert "10 / 10" in points_at("2022-01-01T00:00")
    assert "5 / 10" in points_at("2022-01-02T23:00")
    assert "0 / 10" in points_at("2022-01-04T00:00")
    assert "late until" in school.teacher.get(f"{path}/grades/2").text.lower()


def test_judging_again_takes_what_came_within_it(school, over, judged, store):
    path = over()
    mine, _ = judged("u2", 40), judged("u3", 40)
    extend(school, path, "2098-01-01T12:00")
    school.teacher.post(f"{path}/again", {}, page=school.path)
    with store.read() as session:
        assert session.scalars(select(Submission.id).where(Submission.status == "queued")).all() == [mine]


def test_hidden_references_stay_hidden_as_long(school, over, judged):
    path = over(references_at="2021-01-02T00:00")
    for user in ("u2", "u3"):
        judged(user, 40)
    assert school.ada.get("/problems/40/solution").status_code == 200
    extend(school, path, "2098-01-01T12:00")
    assert school.ada.get("/problems/40/solution").status_code == 404
    assert school.ben.get("/problems/40/solution").status_code == 200


def test_it_is_taken_back_and_all_of_it_is_in_the_log(school, over, judged, store):
    path = over()
    judged("u2", 40)
    extend(school, path, "2098-01-01T12:00")
    extend(school, path, "2097-01-01T12:00")
    page = school.teacher.get(f"{path}/grades/2").text
    assert "2097-01-01 12:00 (Asia/Shanghai)" in page
    assert "Withdraw the extension" in page
    back = school.teacher.post(f"{path}/grades/2/deadline/back", {}, page=school.path)
    assert back.status_code == 303
    assert "it no longer counts" in school.ada.get(path).text
    assert "Withdraw the extension" not in school.teacher.get(f"{path}/grades/2").text
    with store.read() as session:
        assert session.scalars(select(Extension)).all() == []
        said = session.execute(
            select(AuditEntry.action, AuditEntry.target, AuditEntry.detail)
            .order_by(AuditEntry.id.desc())
            .limit(2)
        ).all()
    assert [tuple(s) for s in said] == [
        ("extension_taken_back", "assignment 1", {"user": 2}),
        ("deadline_extended", "assignment 1", {"user": 2, "deadline": to_seconds("2097-01-01T12:00", ZONE)}),
    ]


@pytest.mark.parametrize(
    ("deadline", "told"),
    [
        ("", "This field is empty"),
        ("soon", "2026-12-01 23:59"),
        ("2021-01-01T23:59", "after the deadline for all: 2021-01-01 23:59 (Asia/Shanghai)"),
        ("2020-06-01T00:00", "after the deadline for all"),
    ],
)
def test_a_deadline_that_makes_no_sense_is_refused(school, over, store, deadline, told):
    answer = extend(school, over(), deadline)
    assert answer.status_code == 422
    assert told in answer.text
    with store.read() as session:
        assert session.scalars(select(Extension)).all() == []


def test_only_their_teachers_give_it(school, over):
    path = over()
    data = {"deadline": "2098-01-01T00:00"}
    assert school.ada.post(f"{path}/grades/2/deadline", data, page="/classes").status_code == 403
    assert school.outsider.post(f"{path}/grades/2/deadline", data, page="/classes").status_code == 404
    assert extend(school, path, "2098-01-01T00:00", user=1).status_code == 404, "a teacher is no learner"
    assert extend(school, path, "2098-01-01T00:00", user=4).status_code == 404
    for user in (1, 4, 2**70):
        assert school.teacher.get(f"{path}/grades/{user}").status_code == 404
    assert school.ada.get(f"{path}/grades/2").status_code == 403


def test_an_old_site_gets_the_tables_and_keeps_its_assignments(tmp_path):
    url = f"sqlite:///{tmp_path / 'old.db'}"
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = create_engine(url)
    command.upgrade(config, "0012")
    with config.attributes["engine"].begin() as connection:
        connection.execute(
            text("INSERT INTO classes (id, name, time_zone, created_at) VALUES (1, 'C', 'UTC', 1.0)")
        )
        connection.execute(
            text(
                "INSERT INTO assignments (id, class_id, title, opens_at, deadline_at, late_percent, partial, created_at)"
                " VALUES (7, 1, 'Week 1', 1.0, 2.0, 50, 0, 1.0)"
            )
        )
    store = Store(url)
    store.migrate()
    with store.read() as session:
        assert session.get_one(Assignment, 7).title == "Week 1"
        assert session.scalars(select(Extension)).all() == []
    store.close()
