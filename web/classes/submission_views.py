"""The submissions to an assignment, of the whole class or of one learner, and judging one of them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flask import abort, redirect, render_template, request, url_for
from flask_babel import gettext
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from judge.core.status import Status
from judge.core.wording import say_status
from judge.store import Judgement, Submission
from judge.store.fairness import ACTIVE
from web.accounts.tables import User, key_in_sql
from web.addresses import own_page
from web.classes import extensions, grades, roster
from web.classes.access import Seat, assignment_or_404, seat
from web.classes.blueprint import Page, blueprint
from web.classes.learner_views import LEARNER, details_or_404, work_or_404
from web.classes.tables import AssignedProblem, Assignment, Member, Part
from web.classes.times import to_local
from web.classes.views import problems_of
from web.errors import Told
from web.i18n import language
from web.judging_again import judge_again
from web.services import services

PAGE = 100
WAITING = "waiting"
OUTCOMES = (WAITING, *(str(s) for s in Status if s.is_final))


@dataclass(frozen=True)
class Filter:
    """What of the list is wanted; None: all. `before`: submissions with a smaller number."""

    learner: int | None
    problem: int | None
    outcome: str | None
    before: int | None

    def query(self) -> dict[str, Any]:
        """As the address has it, without the page."""
        return {"learner": self.learner, "problem": self.problem, "outcome": self.outcome}


@dataclass(frozen=True)
class Row:
    """A submission of the list. `arrived`: by the class's clock. `late`, `closed`: handed in after the learner's deadline, or
    when nothing counts any more."""

    id: int
    user: int
    name: str
    login: str
    problem: int
    status: Status
    waits: bool
    public_only: bool
    arrived: str
    passed: int | None
    total: int | None
    late: bool
    closed: bool


@blueprint.get("/<int:number>/assignments/<int:assignment>/submissions", endpoint="submission_list")
def submissions(number: int, assignment: int) -> str:
    """What the class submitted, newest first; `?learner= &problem= &outcome=` keep to some, `?before=` goes back."""
    mine = seat(number, teaching=True)
    found = assignment_or_404(mine, assignment)
    wanted = _wanted()
    with services().store.read() as session:
        problems = problems_of(session, found.id)
        rows = _rows(session, mine, found, problems, wanted)
        learners = [
            (user.id, f"{user.name} ({user.login})")
            for _, user in roster.members(session, number, Part.LEARNER)
        ]
    return render_template(
        "classes/submissions.html",
        mine=mine,
        assignment=found,
        learners=learners,
        titles=[(p.problem, _title(p.problem)) for p in problems],
        outcomes=[(o, gettext("waiting") if o == WAITING else say_status(o, language())) for o in OUTCOMES],
        wanted=wanted,
        rows=rows[:PAGE],
        has_more=len(rows) > PAGE,
        packages=services().packages,
    )


def _title(problem: int) -> str:
    package = services().packages.get(problem)
    return f"{problem} {package.title[language()]}" if package is not None else str(problem)


def _wanted() -> Filter:
    outcome = request.args.get("outcome") or None
    if outcome is not None and outcome not in OUTCOMES:
        abort(400)
    return Filter(_number("learner"), _number("problem"), outcome, _number("before"))


def _number(name: str) -> int | None:
    text = request.args.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 19):
        abort(400)
    return int(text) if text else None


def _rows(
    session: Session, mine: Seat, found: Assignment, problems: Sequence[AssignedProblem], wanted: Filter
) -> list[Row]:
    """A page of the list and one more, if there is one: what teachers may see, as `learner_views` shows it."""
    # While it is judged again, the verdict that it has goes on counting.
    status = func.coalesce(Judgement.status, Submission.status)
    query = (
        select(  # not the whole row: the database sorts what is asked for, and programs are long
            Submission.id,
            Submission.problem,
            Submission.public_only,
            Submission.created_at,
            Submission.status.in_(ACTIVE).label("waits"),
            status.label("status"),
            Judgement.passed,
            Judgement.total,
            User.id.label("user"),
            User.name,
            User.login,
        )
        .join(User, key_in_sql(User.id) == Submission.user)
        .join(Member, Member.user_id == User.id)
        .outerjoin(Judgement, Judgement.id == Submission.current_judgement)
        .where(
            Member.class_id == mine.of.id,
            Member.part == Part.LEARNER,
            Submission.problem.in_([p.problem for p in problems]),
            Submission.created_at >= Member.joined_at,
            Submission.created_at >= found.opens_at,
        )
        .order_by(Submission.id.desc())
        .limit(PAGE + 1)
    )
    if mine.of.archived_at is not None:
        query = query.where(Submission.created_at < mine.of.archived_at)
    if wanted.learner is not None:
        query = query.where(User.id == wanted.learner)
    if wanted.problem is not None:
        query = query.where(Submission.problem == wanted.problem)
    if wanted.before is not None:
        query = query.where(Submission.id < wanted.before)
    if wanted.outcome == WAITING:
        query = query.where(Submission.status.in_(ACTIVE))
    elif wanted.outcome is not None:
        query = query.where(status == wanted.outcome)
    own = extensions.of_assignment(session, found.id)
    rows = []
    for row in session.execute(query):
        at, times = row.created_at, extensions.times(found, own.get(row.user))
        shown = {k: v for k, v in row._mapping.items() if k != "created_at"}
        rows.append(
            Row(
                **shown | {"status": Status(row.status)},
                arrived=to_local(at, mine.of.time_zone).replace("T", " "),
                late=grades.is_late(times, at),
                closed=grades.is_closed(times, at),
            )
        )
    return rows


@blueprint.post(f"{LEARNER}/<int:problem>/<int:submission>/again", endpoint="submission_again")
def again(number: int, assignment: int, user: int, problem: int, submission: int) -> Page:
    """Judge one submission again, by today's version of its problem; field `next`: the page of ours to go back to."""
    work = work_or_404(number, assignment, user, changing=True)
    details_or_404(work, problem, submission)
    package = services().packages.get(problem)
    if package is None:
        raise Told(
            409,
            gettext("Not now"),
            gettext("Problem %(n)s is not on this site any more: there is nothing to judge by.", n=problem),
        )
    judge_again(work.mine.who.key, f"submission {submission}", {problem: package.version}, [submission])
    page = url_for(
        ".grade_submission_of",
        number=number,
        assignment=assignment,
        user=user,
        problem=problem,
        submission=submission,
    )
    return redirect(own_page(request.form.get("next"), page), 303)
