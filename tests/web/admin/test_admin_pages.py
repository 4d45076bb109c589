"""The staff's pages: who gets them, what they show, what they change."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from judge import verified
from judge.packages import survey
from judge.store import Queue, Submission, presence
from judge.store.queue import system_error
from web.accounts.tables import AuditEntry, Role, User
from web.manage import main as manage

PAGES = [
    "/admin",
    "/admin/queue",
    "/admin/packages",
    "/admin/audit",
    "/admin/accounts",
    "/admin/submissions/1",
]
CHANGES = [
    "/admin/accounts",
    *(f"/admin/accounts/1/{what}" for what in ("role", "disable", "enable", "delete", "password")),
    "/admin/submissions/1/again",
    "/admin/problems/40/again",
]


@pytest.mark.parametrize("role", [Role.LEARNER, Role.TEACHER])
def test_only_administrators_get_in(signed_in, root, store, role):
    other = signed_in("other", role)
    assert [other.get(p).status_code for p in PAGES] == [403] * len(PAGES)
    assert [other.post(c, {"role": "admin"}, page="/account").status_code for c in CHANGES] == [403] * len(
        CHANGES
    )
    with store.read() as session:
        assert session.get_one(User, 2).role == role
    assert "Administration" not in other.get("/").text


def test_every_page_opens_in_both_languages(root, judged):
    judged("u1")
    for page in PAGES:
        for lang in ("en", "zh"):
            assert root.get(page, lang=lang).status_code == 200, page
    assert root.get("/admin/submissions/99").status_code == 404
    assert root.get(f"/admin/submissions/{2**70}").status_code == 404


def test_a_site_without_a_worker_says_so(root, store):
    assert "No worker is there" in root.get("/admin").text
    with store.write() as session:
        presence.say(session, "host:1:abc", tier="strong", slots=2, running=1)
    page = root.get("/admin").text
    assert "No worker is there" not in page
    assert "host:1:abc" in page
    assert "1 / 2" in page


def test_a_worker_that_is_not_heard_of_is_gone(root, store):
    from sqlalchemy import update

    from judge.store.tables import Presence

    with store.write() as session:
        presence.say(session, "host:1:abc", tier="strong", slots=2, running=1)
        session.execute(update(Presence).values(seen_at=Presence.seen_at - 60))
    assert "gone" in root.get("/admin").text
    with store.write() as session:
        session.execute(update(Presence).values(seen_at=Presence.seen_at - 100_000))
        presence.say(session, "host:2:abc", tier="strong", slots=2, running=0)
    assert "host:1:abc" not in root.get("/admin").text


def test_judging_again_and_what_changed(root, judged, store, app):
    number = judged("u1", 40, status="wrong_answer", passed=3)
    assert (
        root.post(f"/admin/submissions/{number}/again", {"version": "current"}, page="/admin").status_code
        == 303
    )
    queue = Queue(store)
    claim = queue.claim("w")
    assert claim.version == survey().packages[40].version
    with store.read() as session:
        from judge.store import Judgement

        old = session.scalars(select(Judgement.verdict)).one()
    assert queue.finish(claim, {**old, "status": "accepted", "passed": 19})
    page = root.get(f"/admin/submissions/{number}").text
    assert "differs in: verdict, cases" in page
    assert page.count(">counts<") == 1
    with store.read() as session:
        assert "judged_again" in session.scalars(select(AuditEntry.action)).all()


def test_a_replay_keeps_the_version(root, judged, store):
    number = judged("u1", 40)
    root.post(f"/admin/submissions/{number}/again", {"version": "same"}, page="/admin")
    assert Queue(store).claim("w").version == "0" * 16


def test_all_of_a_problem_again(root, judged, store):
    for user in ("u1", "u2", "u3"):
        judged(user, 40)
    judged("u1", 200)
    assert root.post("/admin/problems/40/again", {}, page="/admin").status_code == 303
    with store.read() as session:
        assert (
            session.scalars(select(Submission.problem).where(Submission.status == "queued")).all() == [40] * 3
        )
    assert root.post("/admin/problems/99999/again", {}, page="/admin").status_code == 404


def test_all_of_a_problem_are_many_transactions_and_each_is_written_down(root, judged, store, monkeypatch):
    monkeypatch.setattr("web.judging_again.MOST_AGAIN", 2)
    for _ in range(5):
        judged("u1", 40)
    answer = root.post("/admin/problems/40/again", {}, page="/admin")
    assert "5 submissions are judged again" in root.get(answer.location).text
    with store.read() as session:
        queued = session.scalars(select(Submission.id).where(Submission.status == "queued")).all()
        counts = session.scalars(select(AuditEntry.detail).where(AuditEntry.action == "judged_again")).all()
    assert len(queued) == 5
    assert [c["count"] for c in counts] == [2, 2, 1]


def test_what_cannot_be_written_down_is_not_judged_again(root, judged, store, monkeypatch):
    number = judged("u1", 40)

    def fails(*arguments, **more):
        raise OSError("the log cannot be written")

    monkeypatch.setattr("web.accounts.people.note", fails)
    assert root.post("/admin/problems/40/again", {}, page="/admin").status_code == 500
    with store.read() as session:
        assert session.get_one(Submission, number).status == "accepted"


def test_a_replay_after_a_fault_goes_by_the_verdict_that_counts(root, judged, store):
    """Judged by today's version, which failed: the replay is that of the verdict that still counts."""
    number = judged("u1", 40)
    root.post(f"/admin/submissions/{number}/again", {"version": "current"}, page="/admin")
    queue = Queue(store)
    claim = queue.claim("w")
    queue.finish(claim, system_error(40, claim.version, "worker_lost", crashes=3))
    page = root.get(f"/admin/submissions/{number}").text
    assert f"<dd><code>{'0' * 16}</code>" in page
    assert "Judge by today" in page
    root.post(f"/admin/submissions/{number}/again", {"version": "same"}, page="/admin")
    assert queue.claim("w").version == "0" * 16


def test_the_packages_say_what_verify_found_of_them(root, settings):
    page = "/admin/packages"
    packages = survey().packages
    assert root.get(page).text.count(">not here<") == len(packages)
    proof = verified.Found(version=packages[40].version, seeds=20, complaints=[], at=1_790_000_000.0)
    verified.write(
        settings.data_dir,
        [
            (40, proof),
            (41, proof),
            (200, proof.model_copy(update={"version": packages[200].version, "complaints": ["<wrong>"]})),
        ],
    )
    for lang, texts in (
        ("en", (">passed<", "20 sittings", ">changed since<", ">1 complaint<")),
        ("zh", (">通过<", "20 次判题", ">之后有改动<", ">1 处问题<")),
    ):
        shown = root.get(page, lang=lang).text
        assert [t for t in texts if shown.count(t) != 1] == []
        assert "&lt;wrong&gt;" in shown
    assert root.get(page).text.count(">not here<") == len(packages) - 3
    (settings.data_dir / verified.NAME).write_text("{")
    told = root.get(page)
    assert told.status_code == 200
    assert "verified.json is damaged" in told.text
    assert told.text.count(">not here<") == len(packages)


def test_accounts_are_made_found_closed_and_deleted(root, store, visitor):
    made = root.post(
        "/admin/accounts", {"login": "tess", "name": "Tess T.", "role": "teacher"}, page="/admin"
    )
    password = re.search(r'class="password"[^>]*>([^<]+)<', made.text)[1]
    assert visitor.sign_in("tess", password).status_code == 303
    assert "Tess T." in root.get("/admin/accounts?q=TESS").text
    assert "Tess T." not in root.get("/admin/accounts?q=%25x").text
    for what, told in (("disable", "Open again"), ("enable", "Close")):
        root.post(f"/admin/accounts/2/{what}", {}, page="/admin")
        assert told in root.get("/admin/accounts?q=tess").text
    assert root.post("/admin/accounts/2/role", {"role": "learner"}, page="/admin").status_code == 303
    assert root.post("/admin/accounts/2/role", {"role": "emperor"}, page="/admin").status_code == 400
    assert root.post("/admin/accounts/2/delete", {}, page="/admin").status_code == 303
    assert "Tess T." not in root.get("/admin/accounts").text
    assert root.post("/admin/accounts/77/delete", {}, page="/admin").status_code == 404
    with store.read() as session:
        actions = session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)).all()
    assert actions == ["account_made", "disabled", "enabled", "role", "deleted"]


def test_who_signs_in_elsewhere_gets_no_password(root, store, person, settings, monkeypatch):
    ada = person("ada")
    with store.write() as session:
        found = session.get_one(User, ada.id)
        found.oidc_subject, found.password_hash = "issuer|ada", None
    path = f"/admin/accounts/{ada.id}/password"
    assert path not in root.get("/admin/accounts").text
    refused = root.post(path, {}, page="/admin")
    assert refused.status_code == 422
    assert "Ada signs in at the school and has no password here" in refused.text
    monkeypatch.setenv("COURSE_DATA_DIR", str(settings.data_dir))
    told = CliRunner().invoke(manage, ["reset", "ada"])
    assert told.exit_code == 1
    assert "signs in at the school" in told.output
    with store.read() as session:
        assert session.get_one(User, ada.id).password_hash is None
        assert "password_reset" not in session.scalars(select(AuditEntry.action)).all()
    assert CliRunner().invoke(manage, ["reset", "root"]).exit_code == 0


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"login": "x y", "name": "N", "role": "learner"},
        {"login": "x", "name": "", "role": "learner"},
        {"login": "x", "name": "N", "role": "god"},
        {"login": "root", "name": "N", "role": "learner"},
    ],
)
def test_an_account_that_cannot_be_is_refused(root, store, data):
    assert root.post("/admin/accounts", data, page="/admin").status_code == 422
    with store.read() as session:
        assert len(session.scalars(select(User)).all()) == 1


def test_the_last_administrator_cannot_be_undone(root, store):
    for what, data in (("disable", {}), ("delete", {}), ("role", {"role": "learner"})):
        root.post(f"/admin/accounts/1/{what}", data, page="/admin")
    assert root.get("/admin").status_code == 200
    with store.read() as session:
        assert session.get_one(User, 1).role == Role.ADMIN


@pytest.mark.parametrize("query", ["before=x", "before=-1", "before=" + "9" * 30])
def test_an_odd_place_in_the_log_is_refused(root, query):
    assert root.get(f"/admin/audit?{query}").status_code == 400


def test_the_log_goes_back_page_by_page(root, store):
    from web.accounts import people

    with store.write() as session:
        for i in range(150):
            people.note(session, "u1", "tried", f"thing {i}")
    first = root.get("/admin/audit").text
    assert "thing 149" in first
    older = re.search(r"/admin/audit\?before=\d+", first)[0]
    assert "thing 0<" in root.get(older).text
    assert root.get("/admin/audit?target=thing+7").text.count("<td>tried</td>") == 1


def test_monitoring(app, settings, visitor, root):
    from tests.web.accounts.conftest import SITE, Visitor
    from web.app import create_app

    health = visitor.client.get("/healthz", base_url="http://10.0.0.7:9000")
    assert (health.status_code, health.text) == (200, "ok\n")
    assert visitor.get("/metrics").status_code == 404
    made = Visitor(
        create_app(settings.model_copy(update={"metrics_token": type(settings.metrics_token)("secret")}))
    )
    assert made.get("/metrics").status_code == 401
    made.get("/login")
    made.get("/problems/200")
    made.get("/problems/<script>")
    made.client.open("/api/v1/nothing", method="MADEUP", base_url=SITE)
    text = made.get("/metrics", headers={"Authorization": "Bearer secret"}).text
    assert "course_submissions_queued 0.0" in text
    assert 'course_request_seconds_count{endpoint="accounts.enter",method="GET",status="200"} 1.0' in text
    assert 'endpoint="problems.show",method="GET",status="303"' in text, "also what the guard turned away"
    assert "script" not in text
    assert "MADEUP" not in text


def test_local_mode_has_the_pages_but_no_accounts(tmp_path):
    from judge.store import Store
    from web.app import create_app
    from web.settings import Settings

    settings = Settings(data_dir=tmp_path, token="t")
    Store(settings.url).migrate()
    client = create_app(settings).test_client()
    base = "http://127.0.0.1:8000"
    client.get("/enter?token=t", base_url=base)
    assert client.get("/admin", base_url=base).status_code == 200
    assert client.get("/admin/accounts", base_url=base).status_code == 404


def test_requests_are_logged_as_json_without_what_was_sent(app, settings, signed_in, capfd):
    import json

    import structlog

    from judge import logs
    from tests.web.accounts.conftest import Visitor
    from web.app import create_app

    signed_in("ada")
    logs.configure("json")
    try:
        visitor = Visitor(create_app(settings.model_copy(update={"log_format": "json"})))
        visitor.sign_in("ada")
        visitor.post("/problems/40/submissions", {"source": "my_secret = 1"}, page="/problems/40")
    finally:
        structlog.reset_defaults()
    err = capfd.readouterr().err
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    last = [line for line in lines if line["event"] == "request"][-1]
    assert (last["endpoint"], last["status"], last["user"]) == ("submissions.create", 303, "u1")
    assert last["ms"] > 0
    assert "my_secret" not in err
    assert "correct horse" not in err
