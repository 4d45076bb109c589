"""One learner in one assignment: what they have, a deadline of their own, their submissions down to the code."""

from __future__ import annotations

from dataclasses import dataclass

from flask import abort, flash, redirect, render_template, url_for
from flask_babel import gettext
from markupsafe import Markup

from judge.store import reading
from judge.store.reading import Details, Summary
from web.accounts import people
from web.accounts.tables import Event, User
from web.classes import extensions, grades
from web.classes.access import Seat, assignment_or_404, learner_or_404, seat
from web.classes.blueprint import Page, blueprint
from web.classes.forms import OwnDeadline
from web.classes.tables import Assignment, Member
from web.classes.times import shown, to_local
from web.classes.views import problems_of
from web.problems.views import shown_source
from web.services import services
from web.text import code
from web.verdicts import present

LEARNER = "/<int:number>/assignments/<int:assignment>/grades/<int:user>"


@dataclass(frozen=True)
class Work:
    """A learner's work for an assignment, as their teacher looks at it."""

    mine: Seat
    assignment: Assignment
    member: Member
    account: User


def work_or_404(number: int, assignment: int, user: int, *, changing: bool = False) -> Work:
    """The work of that learner; aborts as `seat` does for a teacher's page."""
    mine = seat(number, teaching=True, changing=changing)
    found = assignment_or_404(mine, assignment)
    return Work(mine, found, *learner_or_404(mine, user))


@blueprint.get(LEARNER, endpoint="grade_learner")
def learner(number: int, assignment: int, user: int) -> str:
    """What a learner has in each problem, and until when."""
    return _page(work_or_404(number, assignment, user))


def _page(work: Work, form: OwnDeadline | None = None) -> str:
    with services().store.read() as session:
        problems = problems_of(session, work.assignment.id)
        (line,) = grades.book(session, work.assignment, problems, [(work.member, work.account)])
    zone = work.mine.of.time_zone
    return render_template(
        "classes/learner.html",
        mine=work.mine,
        assignment=work.assignment,
        account=work.account,
        problems=problems,
        line=line,
        form=form or OwnDeadline(formdata=None, deadline=to_local(line.times.deadline_at, zone)),
        packages=services().packages,
    )


@blueprint.post(f"{LEARNER}/deadline", endpoint="grade_extend")
def extend(number: int, assignment: int, user: int) -> Page:
    """Give a learner a later deadline than the others have."""
    work = work_or_404(number, assignment, user, changing=True)
    zone = work.mine.of.time_zone
    form = OwnDeadline()
    if not (form.validate_on_submit() and form.deadline.read(zone)):
        return _page(work, form), 422
    until = form.deadline.seconds
    assert until is not None
    if until <= work.assignment.deadline_at:
        text = gettext(
            "This must be after the deadline for all: %(when)s.",
            when=shown(work.assignment.deadline_at, zone),
        )
        form.deadline.errors = [text]
        return _page(work, form), 422
    with services().store.write() as session:
        extensions.grant(session, assignment, user, until)
        people.note(
            session,
            work.mine.who.key,
            Event.DEADLINE_EXTENDED,
            f"assignment {assignment}",
            user=user,
            deadline=until,
        )
    flash(gettext("%(name)s has until %(when)s.", name=work.account.name, when=shown(until, zone)))
    return redirect(url_for(".grade_learner", number=number, assignment=assignment, user=user), 303)


@blueprint.post(f"{LEARNER}/deadline/back", endpoint="grade_take_back_extension")
def take_back_extension(number: int, assignment: int, user: int) -> Page:
    """The deadline for all holds for the learner again."""
    work = work_or_404(number, assignment, user, changing=True)
    with services().store.write() as session:
        if extensions.take_back(session, assignment, user):
            people.note(
                session, work.mine.who.key, Event.EXTENSION_TAKEN_BACK, f"assignment {assignment}", user=user
            )
    flash(gettext("The deadline for all holds for %(name)s again.", name=work.account.name))
    return redirect(url_for(".grade_learner", number=number, assignment=assignment, user=user), 303)


@blueprint.get(f"{LEARNER}/<int:problem>", endpoint="grade_drill")
def drill(number: int, assignment: int, user: int, problem: int) -> str:
    """What a learner submitted to one problem of an assignment, since they joined."""
    work = work_or_404(number, assignment, user)
    return render_template(
        "classes/drill.html",
        mine=work.mine,
        assignment=work.assignment,
        account=work.account,
        package=services().packages.get(problem),
        problem=problem,
        history=_seen(work, problem),
    )


@blueprint.get(f"{LEARNER}/<int:problem>/<int:submission>", endpoint="grade_submission_of")
def submission_of(number: int, assignment: int, user: int, problem: int, submission: int) -> str:
    """One of those submissions: verdict and code, as the learner sees them."""
    work = work_or_404(number, assignment, user)
    details = details_or_404(work, problem, submission)
    lines = code(shown_source(details.source)).rstrip("\n").split("\n")
    package = services().packages.get(problem)
    return render_template(
        "classes/submission.html",
        mine=work.mine,
        assignment=work.assignment,
        account=work.account,
        problem=problem,
        package=package,
        result=present(details, package),
        source_lines=[Markup(line) for line in lines],
    )


def _seen(work: Work, problem: int) -> list[Summary]:
    """What a teacher may see of a learner's submissions to a problem of the assignment: from the day they joined until the
    class was archived. Aborts with 404 for a problem that is not set."""
    with services().store.read() as session:
        if problem not in {p.problem for p in problems_of(session, work.assignment.id)}:
            abort(404)
        history = reading.history(session, work.account.key, problem, limit=500)
    return [h for h in history if _is_seen(work, h)]


def details_or_404(work: Work, problem: int, submission: int) -> Details:
    """One of what `_seen` is about, however long ago. Aborts with 404."""
    with services().store.read() as session:
        set_here = problem in {p.problem for p in problems_of(session, work.assignment.id)}
        found = reading.find(session, work.account.key, submission) if submission < 2**63 else None
    if not set_here or found is None or found.problem != problem or not _is_seen(work, found):
        abort(404)
    return found


def _is_seen(work: Work, one: Summary) -> bool:
    since = max(work.member.joined_at, work.assignment.opens_at)
    archived_at = work.mine.of.archived_at
    return one.created_at >= since and (archived_at is None or one.created_at < archived_at)
