"""A roster as CSV: read whatever a school's programs write, report every bad line, and only then change anything."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field

from flask_babel import gettext
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from web.accounts import passwords, people
from web.accounts.names import NameRefused, clean_login, clean_name
from web.accounts.passwords import Drawn
from web.accounts.tables import Event, User
from web.classes.tables import Class, Member, Part, Removal

MOST_ROWS = 1000
LOGIN_HEADS = {
    *("login", "username", "user", "account", "id", "student id", "student number"),
    *("学号", "登录名", "账号", "帐号", "用户名"),
}
NAME_HEADS = {"name", "full name", "student", "student name", "姓名", "名字", "学生姓名"}
DELIMITERS = (",", ";", "\t")


class RosterRefused(ValueError):
    """The file is no roster; the text says why and what to do, in the reader's language."""


@dataclass(frozen=True)
class Row:
    """A person of the roster; `line` counts from 1, the head included."""

    line: int
    login: str
    name: str


@dataclass(frozen=True)
class BadLine:
    """A line that cannot be taken, and why."""

    line: int
    text: str
    reason: str


@dataclass
class Roster:
    """A roster that was read. Invariant: no two rows have one login."""

    rows: list[Row] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Entered:
    """What became of a row. `password`: drawn for a new account, shown once; None if the account was there."""

    row: Row
    password: str | None
    was_member: bool


def read(data: bytes) -> Roster:
    """A roster from a file's bytes: UTF-8, with or without a mark, or GBK as Excel in China writes it; commas,
    semicolons or tabs; a head that names the columns for sign-in name and name, in either language and any order, or no
    head and the columns in this order. Raises RosterRefused if nothing of it can be read."""
    text, encoding = _decode(data)
    roster = Roster(encoding=encoding)
    head, lines = _table(text)
    seen: dict[str, int] = {}
    for number, cells in lines:
        shown = ", ".join(cells)[:120]
        try:
            if len(cells) <= max(head):
                raise NameRefused(gettext("The line ends before the column of the name."))
            login, name = clean_login(cells[head[0]]), clean_name(cells[head[1]])
        except NameRefused as refused:
            roster.bad.append(BadLine(number, shown, str(refused)))
            continue
        if login in seen:
            reason = gettext("The sign-in name is also that of line %(n)s.", n=seen[login])
            roster.bad.append(BadLine(number, shown, reason))
            continue
        seen[login] = number
        roster.rows.append(Row(number, login, name))
    if not roster.rows and not roster.bad:
        raise RosterRefused(gettext("The file has no line with a person."))
    return roster


def draw(rows: list[Row], known: set[str]) -> dict[str, Drawn]:
    """Login -> a drawn password, for the rows that have no account. Before the transaction of `enter`: a
    thousand hashes take longer than others wait to write."""
    return {row.login: passwords.draw() for row in rows if row.login not in known}


def enter(
    session: Session, into: Class, rows: list[Row], drawn: Mapping[str, Drawn], actor: str
) -> list[Entered]:
    """Bring everybody of the roster into the class, in one transaction. Accounts that are there keep their name and
    password; missing ones are made, each with its password of `drawn`, which has to be changed."""
    users = {u.login: u for u in session.scalars(select(User).where(User.login.in_([r.login for r in rows])))}
    inside = set(session.scalars(select(Member.user_id).where(Member.class_id == into.id)))
    entered = []
    for row in rows:
        user, password = users.get(row.login), None
        if user is None:
            # Not drawn: the account was deleted since it was looked for.
            handed = drawn.get(row.login) or passwords.draw()
            user = people.create_for(session, login=row.login, name=row.name, drawn=handed)
            password = handed.text
        was_member = user.id in inside
        if not was_member:
            member = Member(class_id=into.id, user_id=user.id, account_made_here=password is not None)
            bring_in(session, member)
        entered.append(Entered(row, password, was_member))
    people.note(session, actor, Event.ROSTER, f"class {into.id}", entered=len(rows))
    return entered


def bring_in(session: Session, member: Member) -> None:
    """Enter somebody into a class; who was taken out of it before is in again for good."""
    gone = delete(Removal).where(Removal.class_id == member.class_id, Removal.user_id == member.user_id)
    session.execute(gone)
    session.add(member)


def take_out(session: Session, member: Member) -> None:
    """Take somebody out of a class, so that its links don't let them in again. What they submitted stays theirs."""
    session.merge(Removal(class_id=member.class_id, user_id=member.user_id))
    session.delete(member)


def known_logins(session: Session, rows: list[Row]) -> set[str]:
    """Those of the rows that have an account already."""
    return set(session.scalars(select(User.login).where(User.login.in_([r.login for r in rows]))))


def members(session: Session, of: int, part: Part) -> list[tuple[Member, User]]:
    """The people of a class with that part, by sign-in name: student numbers are what lists are sorted by."""
    query = (
        select(Member, User)
        .join(User, User.id == Member.user_id)
        .where(Member.class_id == of, Member.part == part)
        .order_by(User.login)
    )
    return [(member, user) for member, user in session.execute(query)]


def _decode(data: bytes) -> tuple[str, str]:
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text, encoding
    raise RosterRefused(
        gettext("The file is no text in UTF-8 or GBK. In Excel: “Save as”, “CSV UTF-8 (comma delimited)”.")
    )


def _table(text: str) -> tuple[tuple[int, int], list[tuple[int, list[str]]]]:
    """Which columns hold sign-in name and name, and the lines under the head that are not empty."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines = []
    try:
        for cells in reader:
            trimmed = [c.strip() for c in cells]
            if any(trimmed):
                lines.append((reader.line_num, trimmed))
    except csv.Error as error:
        raise RosterRefused(
            gettext(
                "Line %(n)s is no CSV (%(error)s): is a quotation mark left open?",
                n=reader.line_num,
                error=error,
            )
        ) from None
    if len(lines) > MOST_ROWS + 1:
        raise RosterRefused(
            gettext(
                "The file has %(n)s lines; at most %(most)s people can be imported at once.",
                n=len(lines),
                most=MOST_ROWS,
            )
        )
    heads = [c.lower() for c in lines[0][1]] if lines else []
    login = next((i for i, h in enumerate(heads) if h in LOGIN_HEADS), None)
    name = next((i for i, h in enumerate(heads) if h in NAME_HEADS), None)
    if login is not None and name is not None:
        return (login, name), lines[1:]
    if login is not None or name is not None:
        raise RosterRefused(
            gettext("The head of the file needs two columns, login and name. One of them is missing.")
        )
    return (0, 1), lines


def only_teacher_of(session: Session, user: User) -> str | None:
    """An obstacle to leaving: a class that would be without a teacher. The text says which and what to do."""
    teachers = (
        select(func.count())
        .where(Member.class_id == Class.id, Member.part == Part.TEACHER, Member.user_id != user.id)
        .correlate(Class)
        .scalar_subquery()
    )
    query = (
        select(Class.name)
        .join(Member, Member.class_id == Class.id)
        .where(
            Member.user_id == user.id, Member.part == Part.TEACHER, Class.archived_at.is_(None), teachers == 0
        )
        .limit(1)
    )
    name = session.scalars(query).first()
    if name is None:
        return None
    text: str = gettext(
        "You are the only teacher of “%(name)s”: add another one there, or archive it first.", name=name
    )
    return text
