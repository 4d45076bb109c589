"""A school as it is some weeks into a term: a class from a roster, assignments, announcements, submissions right and wrong.
Made through the site's own forms, before the site is started over it."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from judge.core.status import Status
from judge.packages import survey
from judge.store import Store, Submission
from tests.web.accounts.conftest import HASH, SITE, TOKEN, Visitor
from web.accounts import people
from web.accounts.tables import Role, User, key_of
from web.app import create_app
from web.settings import Settings

JUDGED_S = 90.0
FAMILY, GIVEN = "王李张刘陈杨赵黄周吴", ("晓明", "思远", "雨桐")
NEWS = "第三章的习题课改到周四下午。\nBring your own laptop; the lab's machines are being repaired."


@dataclass
class School:
    """Who can sign in (all with the password of the account tests), by role, and the addresses of what there is: pages of
    a learner, of a teacher, of an administrator."""

    pages: dict[Role, list[str]]
    logins: dict[Role, str]


def make_school(data: Path) -> School:
    """A class of thirty with two assignments in the database of that data folder. What was submitted waits to be judged."""
    settings = Settings(data_dir=data, token=TOKEN, accounts="password", site_url=SITE, registration="link")
    store = Store(settings.url)
    store.migrate()
    store.close()
    app = create_app(settings)
    services = app.extensions["course"]
    with app.test_request_context(), services.store.write() as session:
        for login, name, role in [
            ("root", "管理员 Root", Role.ADMIN),
            ("tess", "Tess Teacher", Role.TEACHER),
            ("20260101", "林晓", Role.LEARNER),
        ]:
            people.create(session, login=login, name=name, role=role, password_hash=HASH)
    teacher = Visitor(app)
    assert teacher.sign_in("tess").status_code == 303
    _class(teacher)
    with services.store.read() as session:
        number = session.scalars(select(User.id).where(User.login == "20260101")).one()
    key = key_of(number)
    for problem, sources in _tries().items():
        for source in sources:
            services.queue.submit(
                user=key, problem=problem, version=survey().packages[problem].version, source=source
            )
    services.store.close()
    work = "/classes/1/assignments/1"
    common = [
        "/",
        "/problems",
        "/problems/40",
        "/problems/200",
        "/chapters/0",
    ]
    common += [
        "/chapters/17",
        "/chapters/17/files/minisgl/attention/fi.py",
        "/search?q=page",
        "/search?q=zzzz",
    ]
    common += [
        "/submissions",
        "/account",
        "/account/password",
        "/account/tokens",
        "/classes",
        "/classes/1",
        "/api/v1",
    ]
    common += ["/no/such/page"]
    own = [
        *common,
        work,
        "/problems/40/solution",
        "/problems/200/solution",
        "/problems/40/compare?old=1&new=2",
    ]
    own += ["/submissions/1", "/submissions/2", "/submissions/3"]
    taught = [
        *common,
        work,
        "/classes/new",
        "/classes/1/people",
        "/classes/1/assignments/new",
        f"{work}/edit",
    ]
    taught += [f"{work}/grades", f"{work}/mistakes", f"{work}/alike/40", f"{work}/submissions"]
    taught += [f"{work}/grades/{number}", f"{work}/grades/{number}/40"]
    taught += [f"{work}/grades/{number}/40/1"]
    run = [
        "/admin",
        "/admin/accounts",
        "/admin/audit",
        "/admin/packages",
        "/admin/queue",
        "/admin/submissions/1",
    ]
    return School(
        {Role.LEARNER: own, Role.TEACHER: taught, Role.ADMIN: run},
        {Role.LEARNER: "20260101", Role.TEACHER: "tess", Role.ADMIN: "root"},
    )


def _tries() -> dict[int, list[bytes]]:
    found = survey().packages
    return {
        40: [found[40].wrong["align_up"].source.encode(), found[40].solution.encode()],
        200: [found[200].wrong["rows_by_enumeration"].source.encode(), b"def flashinfer_metadata(:\n"],
    }


def _class(teacher: Visitor) -> None:
    """The class and what is in it."""
    made = _told(teacher, "/classes/new", {"name": "推理引擎 2026 春", "time_zone": "Asia/Shanghai"})
    where = made.location
    rows = [f"202601{n:02},{FAMILY[n % 10]}{GIVEN[n % 3]}" for n in range(2, 31)]
    data = {
        "file": (io.BytesIO("\n".join(["学号,姓名", "20260101,林晓", *rows]).encode("gbk")), "roster.csv")
    }
    shown = teacher.post(f"{where}/people/roster", data, page=f"{where}/people")
    assert shown.status_code == 200, shown.text
    people_of = "login,name\n20260101,林晓\n" + "\n".join(rows)
    entered = teacher.post(f"{where}/people/enter", {"rows": people_of}, page=f"{where}/people")
    assert entered.status_code == 200, entered.text
    for title, opens, deadline, problems in [
        ("第一次作业：页与对齐", "2026-01-01T00:00", "2099-03-20T23:59", ("40", "200")),
        ("Week 0", "2020-01-01T00:00", "2020-02-01T23:59", ("41",)),
    ]:
        data = {"title": title, "opens": opens, "deadline": deadline, "late_percent": "50", "attempts": "20"}
        data |= {"problem": list(problems)} | {f"points-{p}": "10" for p in problems}
        _told(teacher, f"{where}/assignments/new", data)
    said = teacher.post(f"{where}/announcements", {"text": NEWS}, page=where)
    assert said.status_code == 303, said.text
    linked = teacher.post(f"{where}/links", {"days": "14", "most_uses": "40"}, page=f"{where}/people")
    assert linked.status_code in (200, 303), linked.text


def _told(visitor: Visitor, path: str, data: dict[str, Any]) -> Any:
    made = visitor.post(path, data, page=path)
    assert made.status_code == 303, made.text
    return made


def wait_until_judged(data: Path) -> None:
    """Until a site's worker has judged all that was submitted. Raises TimeoutError."""
    store = Store(Settings(data_dir=data).url)
    ends = time.monotonic() + JUDGED_S
    try:
        while True:
            with store.read() as session:
                waits = session.scalar(
                    select(func.count()).where(Submission.status.in_([Status.QUEUED, Status.RUNNING]))
                )
            if not waits:
                return
            if time.monotonic() > ends:
                raise TimeoutError(f"{waits} submissions are not judged after {JUDGED_S:g} s")
            time.sleep(0.2)
    finally:
        store.close()
