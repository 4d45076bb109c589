"""Assignments: setting, changing, looking at one."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_babel import gettext
from sqlalchemy import delete, select

from judge.store import now
from web.accounts import people
from web.accounts.tables import Event, User
from web.classes import extensions, grades
from web.classes.access import Seat, assignment_or_404, seat
from web.classes.blueprint import Page, blueprint
from web.classes.forms import NewAssignment
from web.classes.tables import AssignedProblem, Assignment
from web.classes.times import to_local
from web.classes.views import problems_of
from web.course.problems import problems_by_chapter, track_problems
from web.services import services

MOST_PROBLEMS, MOST_POINTS = 100, 1000
DAY_S = 24 * 3600.0


@blueprint.route("/<int:number>/assignments/new", methods=["GET", "POST"], endpoint="assignment_new")
def new(number: int) -> Page:
    mine = seat(number, teaching=True, changing=True)
    with services().store.read() as session:
        at = session.scalars(select(now())).one()
    zone = mine.of.time_zone
    week_on = to_local(at + 7 * DAY_S, zone)[:11] + "23:59"
    form = NewAssignment(opens=to_local(at, zone), deadline=week_on)
    return _filled(mine, form, None)


@blueprint.route(
    "/<int:number>/assignments/<int:assignment>/edit", methods=["GET", "POST"], endpoint="assignment_edit"
)
def edit(number: int, assignment: int) -> Page:
    """Change an assignment. What was handed in stays and is graded by what is set now."""
    mine = seat(number, teaching=True, changing=True)
    found = assignment_or_404(mine, assignment)
    zone = mine.of.time_zone
    form = NewAssignment(
        title=found.title,
        opens=to_local(found.opens_at, zone),
        deadline=to_local(found.deadline_at, zone),
        late_until=to_local(found.late_until, zone) if found.late_until is not None else "",
        late_percent=found.late_percent,
        attempts=found.attempts,
        partial=found.partial,
        references_at=to_local(found.references_at, zone) if found.references_at is not None else "",
    )
    return _filled(mine, form, found)


def _filled(mine: Seat, form: NewAssignment, found: Assignment | None) -> Page:
    """Show the form, or keep what it says."""
    chosen, wrong = _chosen() if request.method == "POST" else (_kept(found), "")
    if form.validate_on_submit() and form.read(mine.of.time_zone) and not wrong:
        saved = _save(mine, form, found, chosen)
        flash(gettext("Saved."))
        return redirect(url_for(".assignment_show", number=mine.of.id, assignment=saved), 303)
    failed = request.method == "POST"
    page = render_template(
        "classes/assignment_form.html",
        mine=mine,
        form=form,
        assignment=found,
        groups=_groups(),
        chosen=chosen,
        wrong=wrong,
    )
    return page, 422 if failed else 200


def _groups() -> list[tuple[int | None, list[Any]]]:
    """The problems to choose from, by chapter; None stands for the track beside them."""
    groups: list[tuple[int | None, list[Any]]] = list(problems_by_chapter().items())
    return [*groups, (None, track_problems())]


def _kept(found: Assignment | None) -> dict[int, int]:
    if found is None:
        return {}
    with services().store.read() as session:
        return {p.problem: p.points for p in problems_of(session, found.id)}


def _chosen() -> tuple[dict[int, int], str]:
    """Problem -> points as the form has them, in the order of their numbers, and what is wrong with that."""
    packages = services().packages
    chosen: dict[int, int] = {}
    wrong = ""
    for text in request.form.getlist("problem"):
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else -1
        points = request.form.get(f"points-{number}", "10").strip() or "10"
        if number not in packages:
            wrong = gettext("There is no problem %(n)s.", n=text[:20])
        elif not (points.isascii() and points.isdecimal() and len(points) < 6 and int(points) <= MOST_POINTS):
            wrong = gettext(
                "Points of problem %(n)s: a whole number from 0 to %(most)s.", n=number, most=MOST_POINTS
            )
        else:
            chosen[number] = int(points)
    if not chosen and not wrong:
        wrong = gettext("Choose at least one problem.")
    if len(chosen) > MOST_PROBLEMS:
        wrong = gettext("At most %(n)s problems fit into one assignment.", n=MOST_PROBLEMS)
    return dict(sorted(chosen.items())), wrong


def _save(mine: Seat, form: NewAssignment, found: Assignment | None, chosen: dict[int, int]) -> int:
    with services().store.write() as session:
        row = session.get_one(Assignment, found.id) if found is not None else Assignment(class_id=mine.of.id)
        row.title = form.title.data.strip()
        assert form.opens.seconds is not None
        assert form.deadline.seconds is not None
        row.opens_at, row.deadline_at = form.opens.seconds, form.deadline.seconds
        row.late_until, row.references_at = form.late_until.seconds, form.references_at.seconds
        row.late_percent, row.attempts = form.late_percent.data, form.attempts.data
        row.partial = form.partial.data
        session.add(row)
        session.flush()
        session.execute(delete(AssignedProblem).where(AssignedProblem.assignment_id == row.id))
        for position, (problem, points) in enumerate(chosen.items()):
            session.add(
                AssignedProblem(assignment_id=row.id, problem=problem, position=position, points=points)
            )
        action = Event.ASSIGNMENT_CHANGED if found is not None else Event.ASSIGNMENT_SET
        people.note(session, mine.who.key, action, f"assignment {row.id}", deadline=row.deadline_at)
        return row.id


@blueprint.get("/<int:number>/assignments/<int:assignment>", endpoint="assignment_show")
def show(number: int, assignment: int) -> Page:
    """An assignment as a learner sees it: what to solve, until when, what I have."""
    mine = seat(number)
    found = assignment_or_404(mine, assignment)
    with services().store.read() as session:
        problems = problems_of(session, found.id)
        line = None
        if mine.member is not None and not mine.teaches:
            user = session.get_one(User, mine.member.user_id)
            (line,) = grades.book(session, found, problems, [(mine.member, user)])
        at = session.scalars(select(now())).one()
        times = line.times if line is not None else extensions.times(found)
    return render_template(
        "classes/assignment.html",
        mine=mine,
        assignment=found,
        times=times,
        problems=problems,
        line=line,
        is_late=grades.is_late(times, at),
        is_over=grades.is_closed(times, at),
        packages=services().packages,
    )


@blueprint.post("/<int:number>/assignments/<int:assignment>/delete", endpoint="assignment_remove")
def remove(number: int, assignment: int) -> Page:
    """Delete an assignment. What was submitted stays with those who submitted it."""
    mine = seat(number, teaching=True, changing=True)
    found = assignment_or_404(mine, assignment)
    with services().store.write() as session:
        session.delete(session.get_one(Assignment, found.id))
        people.note(
            session, mine.who.key, Event.ASSIGNMENT_DELETED, f"assignment {found.id}", title=found.title
        )
    return redirect(url_for(".show", number=number), 303)
