"""Rosters: what files are read, what is reported, what changes; and CSV that spreadsheets don't run."""

from __future__ import annotations

import csv
import html
import io
import re

import pytest
from sqlalchemy import select

from web.accounts.tables import User
from web.classes import roster
from web.classes.csv_files import safe
from web.classes.tables import Member

GOOD = [("s001", "王小明"), ("s002", "Ada Lovelace")]


@pytest.mark.parametrize(
    "data",
    [
        "s001,王小明\ns002,Ada Lovelace\n".encode(),
        "\ufeff学号,姓名\r\ns001,王小明\r\ns002,Ada Lovelace\r\n".encode(),
        "姓名;学号\n王小明;s001\nAda Lovelace;s002".encode("gbk"),
        "Login\tGroup\tName\nS001\tx\t王小明\n\n s002 \ty\t Ada  Lovelace \n".encode(),
        'login,name\ns001,"王小明"\ns002,"Ada Lovelace"\n'.encode("gb18030"),
    ],
)
def test_what_schools_write_is_read(app, data):
    with app.test_request_context():
        found = roster.read(data)
    assert [(r.login, r.name) for r in found.rows] == GOOD
    assert found.bad == []


def test_bad_lines_are_reported_one_by_one(app):
    data = "login,name\nok,Fine\nno name\nok,Twice\n=1+1,Formula\nx y,Space\nz,\u202eevil\n,Empty\n".encode()
    with app.test_request_context(headers={"Accept-Language": "en"}):
        found = roster.read(data)
    assert [r.login for r in found.rows] == ["ok"]
    assert [b.line for b in found.bad] == [3, 4, 5, 6, 7, 8]
    assert "also that of line 2" in found.bad[1].reason
    assert "U+202E" in found.bad[4].reason


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"\x89PNG\r\n\x1a\n\0\0",
        b"\xff\xfe\x00",
        b"login,group\na,b\n",
        b"x,y\n" * 1002,
        b'a,"open\nb,c',
    ],
)
def test_what_is_no_roster_is_refused_with_a_reason(app, data):
    with (
        app.test_request_context(headers={"Accept-Language": "en"}),
        pytest.raises(roster.RosterRefused, match=r"\w{3}"),
    ):
        roster.read(data)


def test_a_roster_makes_accounts_once(school, store):
    text = "学号,姓名\ns001,王小明\nada,Somebody Else\nbad line\n".encode()
    shown = school.teacher.post(
        f"{school.path}/people/roster",
        {"file": (io.BytesIO(text), "r.csv")},
        page=f"{school.path}/people",
        content_type="multipart/form-data",
    )
    assert shown.status_code == 200, shown.text
    assert "1 line cannot be taken" in shown.text
    with store.read() as session:
        assert session.scalars(select(User).where(User.login == "s001")).all() == [], (
            "only shown, nothing changed"
        )
    rows = 's001,"王小明"\nada,"Somebody Else"'
    done = school.teacher.post(f"{school.path}/people/enter", {"rows": rows}, page=f"{school.path}/people")
    assert done.status_code == 200, done.text
    with store.read() as session:
        made = session.scalars(select(User).where(User.login == "s001")).one()
        assert (made.name, made.must_change_password) == ("王小明", True)
        assert session.scalars(select(User.name).where(User.login == "ada")).one() == "Ada", "keeps its name"
        assert session.get(Member, (school.number, made.id)).account_made_here
    assert "was in the class" in done.text
    again = school.teacher.post(f"{school.path}/people/enter", {"rows": rows}, page=f"{school.path}/people")
    assert again.text.count('class="password"') == 0, "no second password"


@pytest.mark.parametrize("line", ["user,Ada", "student,王小明", 's1,"A;B;C"', "login,Ida", 's2,"O""Hara"'])
def test_what_was_shown_is_what_is_entered(school, store, line):
    shown = school.teacher.post(
        f"{school.path}/people/roster",
        {"file": (io.BytesIO(f"login,name\n{line}\n".encode()), "class.csv")},
        page=f"{school.path}/people",
        content_type="multipart/form-data",
    )
    rows = html.unescape(re.search(r'<textarea name="rows" hidden>([^<]*)</textarea>', shown.text)[1])
    done = school.teacher.post(f"{school.path}/people/enter", {"rows": rows}, page=f"{school.path}/people")
    assert done.status_code == 200, done.text
    with store.read() as session:
        found = session.execute(select(User.login, User.name).order_by(User.id.desc())).first()
    assert list(found) == next(csv.reader([line]))


def test_thirty_are_entered_and_can_sign_in(school, visitor):
    text = "".join(f"n{i:02},Learner {i}\n" for i in range(30))
    done = school.teacher.post(f"{school.path}/people/enter", {"rows": text}, page=f"{school.path}/people")
    found = re.findall(r'<code class="password"[^>]*>([^<]+)</code>', done.text)
    assert len(set(found)) == 30
    assert visitor.sign_in("n07", found[7]).status_code == 303
    assert visitor.get("/").location == "/account/password"


def test_what_is_exported_is_read_back_and_harmless(app, school):
    school.teacher.post(
        f"{school.path}/people/enter",
        {"rows": 'n1,"=1+1 X"\nn2,"@SUM(A1)"\nn3,"＝cmd"'},
        page=f"{school.path}/people",
    )
    data = school.teacher.get(f"{school.path}/people.csv").data
    assert data.startswith(b"\xef\xbb\xbf")
    for line in data.decode("utf-8-sig").splitlines()[1:]:
        assert line.split(",")[1][0] not in "=+-@＝＋－＠"
    with app.test_request_context():
        assert len(roster.read(data).rows) == 5


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "＝1", "＋1", "－1", "＠x", "  =1"])
def test_no_cell_is_a_formula(cell):
    assert safe(cell).startswith("'")
    assert safe(-1) == "-1"
    assert safe("a=1") == "a=1"
