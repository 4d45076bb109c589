"""Who sees what: learners, teachers, strangers to a class."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select, update

from judge.store import Submission
from tests.web.accounts.conftest import Visitor
from web.accounts.tables import Role, User
from web.app import create_app
from web.classes import links
from web.classes.tables import Invitation, Member, Removal


@pytest.mark.parametrize(
    "rest", ["", "/people", "/people.csv", "/assignments/new", "/assignments/1", "/assignments/1/grades"]
)
def test_a_class_does_not_exist_for_those_outside(school, assignment, rest):
    assert school.outsider.get(school.path + rest).status_code == 404
    assert school.outsider.get("/classes/999" + rest).status_code == 404


@pytest.mark.parametrize(
    "rest",
    [
        "/people",
        "/people.csv",
        "/assignments/new",
        "/assignments/1/edit",
        "/assignments/1/grades",
        "/assignments/1/grades.csv",
        "/assignments/1/grades/2/40",
        "/assignments/1/mistakes",
    ],
)
def test_learners_do_not_get_the_teachers_pages(school, assignment, rest):
    assert school.ada.get(school.path + rest).status_code == 403


@pytest.mark.parametrize(
    "rest",
    [
        "/announcements",
        "/archive",
        "/reopen",
        "/people/add",
        "/people/enter",
        "/people/2/remove",
        "/people/2/password",
        "/links",
        "/assignments/new",
        "/assignments/1/edit",
        "/assignments/1/delete",
    ],
)
def test_learners_and_strangers_change_nothing(school, assignment, store, rest):
    before = _members(store)
    assert (
        school.ada.post(school.path + rest, {"text": "x", "login": "olaf"}, page="/classes").status_code
        == 403
    )
    assert school.outsider.post(school.path + rest, {"text": "x"}, page="/classes").status_code == 404
    assert _members(store) == before


def test_a_learner_cannot_make_a_class(school):
    assert (
        school.ada.post("/classes/new", {"name": "Mine", "time_zone": "UTC"}, page="/classes").status_code
        == 403
    )


def test_a_teacher_sees_the_class_s_work_and_nothing_else(school, assignment, store, judged):
    mine, old, elsewhere = judged("u2", 40), judged("u2", 40), judged("u2", 200)
    other_problem = judged("u2", 30)
    with store.write() as session:
        session.execute(update(Submission).where(Submission.id == old).values(created_at=1_600_000_000.0))
    base = f"{assignment}/grades/2"
    page = school.teacher.get(f"{base}/40").text
    assert f"/{mine}" in page
    assert f">{old}<" not in page, "from before they joined"
    assert school.teacher.get(f"{base}/40/{mine}").status_code == 200
    assert school.teacher.get(f"{base}/200/{elsewhere}").status_code == 200
    for wrong in (
        f"{base}/40/{old}",
        f"{base}/30/{other_problem}",
        f"{base}/40/{elsewhere}",
        f"{base}/30",
        f"{base}/40/{2**70}",
    ):
        assert school.teacher.get(wrong).status_code == 404
    assert school.teacher.get(f"{assignment}/grades/1/40").status_code == 404, "a teacher is no learner"
    assert school.teacher.get(f"/submissions/{mine}").status_code == 404


def test_whoever_leaves_takes_their_work_along(school, assignment, judged):
    mine = judged("u2", 40)
    assert school.teacher.get(f"{assignment}/grades/2/40/{mine}").status_code == 200
    assert school.ada.post(f"{school.path}/leave", {}, page=school.path).status_code == 303
    assert school.teacher.get(f"{assignment}/grades/2/40/{mine}").status_code == 404
    assert school.ada.get(school.path).status_code == 404


def test_a_teacher_gives_passwords_only_to_accounts_of_their_roster(school, store):
    refused = school.teacher.post(f"{school.path}/people/2/password", {}, page=school.path)
    assert refused.status_code == 403, "ada's account was there before"
    assert "The account of Ada was not created by this class" in refused.text
    school.teacher.post(f"{school.path}/people/enter", {"rows": "n1,New One"}, page=school.path)
    with store.read() as session:
        number = session.scalars(select(User.id).where(User.login == "n1")).one()
    page = school.teacher.post(f"{school.path}/people/{number}/password", {}, page=school.path)
    assert re.search(r'class="password"[^>]*>\w{4}-\w{4}-\w{4}<', page.text)
    with store.write() as session:
        session.get_one(User, number).role = str(Role.ADMIN)
    assert (
        school.teacher.post(f"{school.path}/people/{number}/password", {}, page=school.path).status_code
        == 403
    )


def test_nor_to_somebody_who_signs_in_elsewhere(school, store):
    school.teacher.post(f"{school.path}/people/enter", {"rows": "n1,New One"}, page=school.path)
    with store.write() as session:
        made = session.scalars(select(User).where(User.login == "n1")).one()
        made.oidc_subject, made.password_hash = "issuer|n1", None
    path = f"{school.path}/people/{made.id}/password"
    assert path not in school.teacher.get(f"{school.path}/people").text
    refused = school.teacher.post(path, {}, page=school.path)
    assert refused.status_code == 403
    assert "New One signs in at the school and has no password here" in refused.text
    with store.read() as session:
        assert session.get_one(User, made.id).password_hash is None


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/new", {"name": " \t", "time_zone": "Asia/Shanghai"}),
        ("/1/announcements", {"text": " \n "}),
        ("/1/assignments/new", {"title": "  ", "opens": "2020-01-01T00:00", "deadline": "2099-01-01T23:59"}),
    ],
)
def test_nothing_has_an_empty_name(school, path, data):
    answer = school.teacher.post(
        f"/classes{path}", data, page=f"/classes{path}" if "new" in path else school.path
    )
    assert answer.status_code == 422
    assert "This field is empty" in answer.text


@pytest.mark.parametrize("change", [{"closed_at": 1.0}, {"expires_at": 1.0}, {"uses": 1}])
def test_a_link_that_ends_while_somebody_fills_in_the_form_lets_nobody_in(school, store, person, change):
    late = person("late")
    with store.write() as session:
        token = links.make(session, school.number, days=1, most_uses=1)
    with store.read() as session:
        link, _ = links.find(session, token)
    with store.write() as session:
        session.execute(update(Invitation).values(**change))
    with store.write() as session:
        assert not links.use(session, link, late.id)
    with store.read() as session:
        assert session.get(Member, (school.number, late.id)) is None


def test_a_link_lets_in_until_it_is_used_up(school, store, signed_in):
    page = school.teacher.post(
        f"{school.path}/links", {"days": "3", "most_uses": "1"}, page=f"{school.path}/people"
    )
    link = re.search(r"http://course\.example\.edu:8000(/join/[\w-]+)", page.text)[1]
    assert school.ada.post(link, {}, page="/classes").status_code == 303, "is in already: costs nothing"
    eve, max_ = signed_in("eve"), signed_in("max")
    assert "推理 2026" in eve.get(link).text
    assert eve.post(link, {}, page="/classes").location == school.path
    assert eve.get(school.path).status_code == 200
    assert max_.get(link).status_code == 404
    assert eve.get("/join/nothing").status_code == 404


def test_who_was_taken_out_does_not_come_back_by_a_link(school, store):
    def link(visitor):
        page = visitor.post(
            f"{school.path}/links", {"days": "3", "most_uses": "9"}, page=f"{school.path}/people"
        )
        return re.search(r"http://course\.example\.edu:8000(/join/[\w-]+)", page.text)[1]

    old = link(school.teacher)
    assert school.teacher.post(f"{school.path}/people/2/remove", {}, page=school.path).status_code == 303
    told = school.teacher.get(f"{school.path}/people").text
    assert "Ada is out of the class. Links do not let this account in again" in told
    assert "can create another account" not in told, "on this site only a roster makes accounts"
    for way in (old, link(school.teacher)):
        refused = school.ada.post(way, {}, page="/classes")
        assert refused.status_code == 403
        assert "You were taken out of this class" in refused.text
    assert school.ada.get(school.path).status_code == 404
    with store.read() as session:
        assert session.scalars(select(Invitation.uses)).all() == [0, 0]
    added = {"login": "ada", "part": "learner"}
    assert school.teacher.post(f"{school.path}/people/add", added, page=school.path).status_code == 303
    assert school.ada.post(f"{school.path}/leave", {}, page=school.path).status_code == 303
    assert school.ada.post(old, {}, page="/classes").status_code == 303, (
        "who left by themselves may come back"
    )


def test_a_roster_takes_back_who_was_taken_out(school, store):
    school.teacher.post(f"{school.path}/people/2/remove", {}, page=school.path)
    school.teacher.post(f"{school.path}/people/enter", {"rows": "ada,Ada"}, page=school.path)
    assert school.ada.get(school.path).status_code == 200
    with store.read() as session:
        assert session.scalars(select(Removal)).all() == []


@pytest.mark.parametrize("has_link", [True, False])
def test_where_a_link_makes_accounts_removal_says_so(school, settings, has_link):
    teacher = Visitor(create_app(settings.model_copy(update={"registration": "link"})))
    teacher.sign_in("tess")
    if has_link:
        teacher.post(f"{school.path}/links", {"days": "3", "most_uses": "9"}, page=school.path)
    teacher.post(f"{school.path}/people/2/remove", {}, page=school.path)
    told = teacher.get(f"{school.path}/people").text
    assert "Ada is out of the class" in told
    assert ("whoever has it can create another account" in told) is has_link


def test_a_teacher_who_goes_is_not_left_on_a_page_that_is_none(school):
    school.teacher.post(
        f"{school.path}/people/add", {"login": "olaf", "part": "teacher"}, page=f"{school.path}/people"
    )
    gone = school.teacher.post(f"{school.path}/people/1/remove", {}, page=f"{school.path}/people")
    assert gone.location == "/classes"
    assert school.teacher.get(gone.location).status_code == 200


def test_a_closed_link_is_closed(school, signed_in):
    page = school.teacher.post(
        f"{school.path}/links", {"days": "3", "most_uses": "9"}, page=f"{school.path}/people"
    )
    link = re.search(r"http://course\.example\.edu:8000(/join/[\w-]+)", page.text)[1]
    assert (
        school.teacher.post(f"{school.path}/links/1/close", {}, page=f"{school.path}/people").status_code
        == 303
    )
    assert signed_in("eve").get(link).status_code == 404


def test_a_class_keeps_a_teacher(school, store):
    school.teacher.post(f"{school.path}/people/1/remove", {}, page=f"{school.path}/people")
    assert (school.number, 1) in _members(store)


def test_announcements_are_text(school):
    school.teacher.post(
        f"{school.path}/announcements", {"text": "<b>Hi</b>\n[x](javascript:1)"}, page=school.path
    )
    page = school.ada.get(school.path).text
    assert "&lt;b&gt;Hi&lt;/b&gt;" in page
    assert "[x](javascript:1)" in page
    assert school.ada.post(f"{school.path}/announcements/1/delete", {}, page=school.path).status_code == 403


def test_deleting_an_account_takes_it_out_of_its_classes(app, school, store):
    from web.accounts import people

    with app.test_request_context(), store.write() as session:
        people.remove(session, session.get_one(User, 2), "u9")
    assert [u for _, u in _members(store)] == [1, 3]
    assert school.teacher.get(f"{school.path}/people").status_code == 200


def _members(store):
    with store.read() as session:
        return sorted(tuple(row) for row in session.execute(select(Member.class_id, Member.user_id)))


def test_a_class_is_not_left_without_a_teacher_by_leaving_the_site(school, store):
    refused = school.teacher.post("/account/delete", {"password": "correct horse battery"}, page="/account")
    assert refused.status_code == 409
    assert "You are the only teacher of “推理 2026”" in refused.text
    school.teacher.post(
        f"{school.path}/people/add", {"login": "olaf", "part": "teacher"}, page=f"{school.path}/people"
    )
    left = school.teacher.post("/account/delete", {"password": "correct horse battery"}, page="/account")
    assert "are gone" in left.text
    assert school.outsider.get(f"{school.path}/people").status_code == 200
