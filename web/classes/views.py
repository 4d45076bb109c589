"""My classes, and the page of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flask import abort, flash, redirect, render_template, url_for
from flask_babel import gettext
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from judge.store import now
from web.accounts import people
from web.accounts.forms import ZONES
from web.accounts.identity import Identity, identity
from web.accounts.tables import Event, User
from web.classes import grades, roster
from web.classes.access import Seat, seat
from web.classes.blueprint import Page, blueprint
from web.classes.extensions import Times, times
from web.classes.forms import NewAnnouncement, NewClass
from web.classes.tables import Announcement, AssignedProblem, Assignment, Class, Member, Part
from web.services import services


@dataclass(frozen=True)
class Task:
    """An assignment with its problems, as a list shows it. `line`: a learner's own, None for teachers; `times`: the
    learner's, for teachers those of all."""

    assignment: Assignment
    problems: Sequence[AssignedProblem]
    line: grades.Line | None
    times: Times
    is_open: bool
    is_over: bool

    @property
    def most(self) -> int:
        """Points that can be had."""
        return sum(p.points for p in self.problems)

    @property
    def solved(self) -> int:
        """How many of its problems the learner has solved; 0 for teachers."""
        return sum(cell.solved for cell in self.line.cells.values()) if self.line else 0


@blueprint.get("")
def index() -> str:
    """The classes I am in; for an administrator all of them."""
    who = me()
    query = select(Class, Member).outerjoin(
        Member, (Member.class_id == Class.id) & (Member.user_id == who.number)
    )
    if not who.is_admin:
        query = query.where(Member.user_id.is_not(None))
    with services().store.read() as session:
        found = [
            (c, m) for c, m in session.execute(query.order_by(Class.archived_at.is_not(None), Class.name))
        ]
    return render_template("classes/index.html", classes=found)


@blueprint.route("/new", methods=["GET", "POST"])
def new() -> Page:
    """Make a class; its maker teaches it."""
    who = me()
    if not who.is_teacher:
        abort(403)
    form = NewClass(time_zone=who.time_zone or "Asia/Shanghai")
    if form.validate_on_submit():
        with services().store.write() as session:
            made = Class(name=form.name.data.strip(), time_zone=form.time_zone.data)
            session.add(made)
            session.flush()
            session.add(Member(class_id=made.id, user_id=who.number or 0, part=str(Part.TEACHER)))
            people.note(session, who.key, Event.CLASS_MADE, f"class {made.id}", name=made.name)
        return redirect(url_for(".show", number=made.id), 303)
    return render_template("classes/new.html", form=form, zones=sorted(ZONES)), 422 if form.errors else 200


@blueprint.get("/<int:number>")
def show(number: int) -> str:
    """A class: announcements, assignments with what I have of them, and for teachers the ways to everything else."""
    mine = seat(number)
    return class_page(mine, NewAnnouncement(formdata=None))


def class_page(mine: Seat, form: NewAnnouncement) -> str:
    with services().store.read() as session:
        said = session.scalars(
            select(Announcement).where(Announcement.class_id == mine.of.id).order_by(Announcement.id.desc())
        ).all()
        teachers = [user for _, user in roster.members(session, mine.of.id, Part.TEACHER)]
        learners = len(roster.members(session, mine.of.id, Part.LEARNER)) if mine.teaches else 0
        return render_template(
            "classes/show.html",
            mine=mine,
            form=form,
            announcements=said,
            teachers=teachers,
            learners=learners,
            tasks=tasks(session, mine),
            packages=services().packages,
        )


def tasks(session: Session, mine: Seat) -> list[Task]:
    """The assignments of a class that I may see, those that end next first, then those that are over."""
    at = session.scalars(select(now())).one()
    found = session.scalars(select(Assignment).where(Assignment.class_id == mine.of.id)).all()
    rows = []
    for assignment in found:
        is_open = assignment.opens_at <= at
        if not (is_open or mine.teaches):
            continue
        problems = problems_of(session, assignment.id)
        line = None
        if mine.member is not None and not mine.teaches:
            user = session.get_one(User, mine.member.user_id)
            (line,) = grades.book(session, assignment, problems, [(mine.member, user)])
        mine_are = line.times if line is not None else times(assignment)
        rows.append(Task(assignment, problems, line, mine_are, is_open, grades.is_closed(mine_are, at)))
    return sorted(rows, key=lambda t: (t.is_over, t.times.deadline_at))


def assignments_due() -> list[tuple[Class, Task]]:
    """What still counts of the assignments of all classes that I learn in, by deadline."""
    who = identity()
    if services().settings.accounts == "none" or who is None or who.number is None:
        return []
    query = (
        select(Class, Member)
        .join(Member, Member.class_id == Class.id)
        .where(Member.user_id == who.number, Member.part == Part.LEARNER, Class.archived_at.is_(None))
    )
    with services().store.read() as session:
        mine = [Seat(who, of, member) for of, member in session.execute(query)]
        found = [(s.of, t) for s in mine if not s.teaches for t in tasks(session, s) if not t.is_over]
    return sorted(found, key=lambda pair: pair[1].times.deadline_at)


def problems_of(session: Session, assignment: int) -> Sequence[AssignedProblem]:
    """The problems of an assignment, in its order."""
    query = (
        select(AssignedProblem)
        .where(AssignedProblem.assignment_id == assignment)
        .order_by(AssignedProblem.position)
    )
    return session.scalars(query).all()


@blueprint.post("/<int:number>/announcements")
def announce(number: int) -> Page:
    mine = seat(number, teaching=True, changing=True)
    form = NewAnnouncement()
    if not form.validate_on_submit():
        return class_page(mine, form), 422
    with services().store.write() as session:
        session.add(
            Announcement(
                class_id=number, author=mine.who.name, text=form.text.data.replace("\r\n", "\n").strip()
            )
        )
        people.note(session, mine.who.key, Event.ANNOUNCED, f"class {number}")
    return redirect(url_for(".show", number=number), 303)


@blueprint.post("/<int:number>/announcements/<int:said>/delete")
def take_back(number: int, said: int) -> Page:
    mine = seat(number, teaching=True, changing=True)
    with services().store.write() as session:
        found = session.get(Announcement, said) if said < 2**63 else None
        if found is None or found.class_id != number:
            abort(404)
        session.delete(found)
        people.note(session, mine.who.key, Event.ANNOUNCEMENT_DELETED, f"class {number}")
    return redirect(url_for(".show", number=number), 303)


@blueprint.post("/<int:number>/archive")
def archive(number: int) -> Page:
    """Archive a class: from here on it is for reading."""
    mine = seat(number, teaching=True, changing=True)
    with services().store.write() as session:
        session.execute(update(Class).where(Class.id == number).values(archived_at=now()))
        people.note(session, mine.who.key, Event.ARCHIVED, f"class {number}")
    flash(gettext("The class is archived: it can be read, nothing more is set."))
    return redirect(url_for(".show", number=number), 303)


@blueprint.post("/<int:number>/reopen")
def reopen(number: int) -> Page:
    """Take an archived class up again: the one change that it admits."""
    mine = seat(number, teaching=True)
    if mine.of.archived_at is not None:
        with services().store.write() as session:
            session.execute(update(Class).where(Class.id == number).values(archived_at=None))
            people.note(session, mine.who.key, Event.REOPENED, f"class {number}")
    flash(gettext("The class is open again."))
    return redirect(url_for(".show", number=number), 303)


@blueprint.post("/<int:number>/leave")
def leave(number: int) -> Page:
    """Leave a class that I learn in. Its teachers then see nothing of mine any more."""
    mine = seat(number, changing=True)
    if mine.member is None or mine.member.part != Part.LEARNER:
        abort(403)
    with services().store.write() as session:
        session.delete(session.get_one(Member, (number, mine.member.user_id)))
        people.note(session, mine.who.key, Event.LEFT, f"class {number}")
    flash(gettext("You have left the class “%(name)s”.", name=mine.of.name))
    return redirect(url_for(".index"), 303)


def me() -> Identity:
    who = identity()
    if who is None or who.number is None:
        abort(401)
    return who
