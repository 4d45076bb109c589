"""The grade book of an assignment: all learners; as CSV; and what the class gets wrong. `learner_views` leads from
it down to the code."""

from __future__ import annotations

from flask import Response, abort, redirect, render_template, url_for
from flask_babel import gettext
from sqlalchemy import select
from sqlalchemy.orm import Session

from judge.core.status import Status
from judge.store import Judgement, Submission
from web.classes import grades, roster, similarity
from web.classes.access import Seat, assignment_or_404, seat
from web.classes.blueprint import Page, blueprint
from web.classes.csv_files import csv_response
from web.classes.tables import AssignedProblem, Assignment, Part
from web.classes.times import shown
from web.classes.views import problems_of
from web.judging_again import judge_again
from web.problems.views import shown_source
from web.services import services


def _book(session: Session, mine: Seat, found: Assignment) -> tuple[list[AssignedProblem], list[grades.Line]]:
    problems = list(problems_of(session, found.id))
    learners = roster.members(session, mine.of.id, Part.LEARNER)
    return problems, grades.book(session, found, problems, learners)


@blueprint.get("/<int:number>/assignments/<int:assignment>/grades", endpoint="grade_book")
def book(number: int, assignment: int) -> str:
    mine = seat(number, teaching=True)
    found = assignment_or_404(mine, assignment)
    with services().store.read() as session:
        problems, lines = _book(session, mine, found)
    return render_template(
        "classes/grades.html",
        mine=mine,
        assignment=found,
        problems=problems,
        lines=lines,
        most=sum(p.points for p in problems),
        packages=services().packages,
        solved={p.problem: sum(line.cells[p.problem].solved for line in lines) for p in problems},
    )


@blueprint.get("/<int:number>/assignments/<int:assignment>/grades.csv", endpoint="grade_export")
def export(number: int, assignment: int) -> Response:
    """The grade book as CSV: points for each problem, their sum, when what counts was handed in, and the deadline."""
    mine = seat(number, teaching=True)
    found = assignment_or_404(mine, assignment)
    with services().store.read() as session:
        problems, lines = _book(session, mine, found)
    head: list[object] = [gettext("login"), gettext("name"), gettext("points")]
    for p in problems:
        head += [
            f"{p.problem} ({p.points})",
            gettext("%(n)s: submitted", n=p.problem),
            gettext("%(n)s: tries", n=p.problem),
        ]
    rows: list[list[object]] = []
    for line in lines:
        row: list[object] = [line.user.login, line.user.name, line.points]
        for p in problems:
            cell = line.cells[p.problem]
            at = shown(cell.best.created_at, mine.of.time_zone) if cell.best else ""
            row += [cell.points, f"{at} {gettext('late')}".strip() if cell.late else at, cell.tries]
        rows.append([*row, shown(line.times.deadline_at, mine.of.time_zone)])
    return csv_response(f"grades-{assignment}.csv", [[*head, gettext("deadline")], *rows])


@blueprint.post("/<int:number>/assignments/<int:assignment>/again", endpoint="grade_again")
def again(number: int, assignment: int) -> Page:
    """Judge all that counts for the assignment again, by today's versions of its problems; no deadline moves."""
    mine = seat(number, teaching=True, changing=True)
    found = assignment_or_404(mine, assignment)
    packages = services().packages
    with services().store.read() as session:
        problems, lines = _book(session, mine, found)
        of = {line.user.key: line for line in lines}
        handed_in = select(Submission.id, Submission.user, Submission.created_at).where(
            Submission.user.in_(of),
            Submission.problem.in_([p.problem for p in problems]),
            Submission.public_only.is_(False),
            Submission.created_at >= found.opens_at,
        )
        numbers = [
            one.id
            for one in session.execute(handed_in)
            if grades.counts_at(of[one.user].times, of[one.user].member.joined_at, one.created_at)
        ]
    versions = {p.problem: packages[p.problem].version for p in problems if p.problem in packages}
    judge_again(mine.who.key, f"assignment {assignment}", versions, numbers)
    return redirect(url_for(".grade_book", number=number, assignment=assignment), 303)


@blueprint.get("/<int:number>/assignments/<int:assignment>/alike/<int:problem>", endpoint="grade_alike")
def alike(number: int, assignment: int, problem: int) -> str:
    """Which learners' programs, of those that count, are more alike than the problem makes them."""
    mine = seat(number, teaching=True)
    found = assignment_or_404(mine, assignment)
    package = services().packages.get(problem)
    with services().store.read() as session:
        problems, lines = _book(session, mine, found)
        if problem not in {p.problem for p in problems}:
            abort(404)
        counted = {line.user.login: line for line in lines if line.cells[problem].best is not None}
        programs: dict[str, str] = {}
        for login, line in counted.items():
            best = line.cells[problem].best
            if best is not None:
                programs[login] = shown_source(session.get_one(Submission, best.id).source)
    given = (package.starter, package.solution) if package is not None else ("",)
    suspicious = similarity.pairs(programs, *given[:1], own=given[1:])
    return render_template(
        "classes/alike.html",
        mine=mine,
        assignment=found,
        problem=problem,
        packages=services().packages,
        pairs=suspicious,
        lines=counted,
        compared=len(programs),
    )


@blueprint.get("/<int:number>/assignments/<int:assignment>/mistakes", endpoint="grade_mistakes")
def mistakes(number: int, assignment: int) -> str:
    """Which misconceptions the class has: for each problem, how many learners a diagnosis named, and how many of them
    solved it since."""
    mine = seat(number, teaching=True)
    found = assignment_or_404(mine, assignment)
    with services().store.read() as session:
        problems, lines = _book(session, mine, found)
        joined = {line.user.key: line.member.joined_at for line in lines}
        named = _named(session, found, [p.problem for p in problems], joined)
    solved = {(p.problem, line.user.key) for line in lines for p in problems if line.cells[p.problem].solved}
    table = {
        p.problem: [
            (wrong, len(users), sum((p.problem, u) in solved for u in users))
            for wrong, users in sorted(named.get(p.problem, {}).items(), key=lambda item: -len(item[1]))
        ]
        for p in problems
    }
    return render_template(
        "classes/mistakes.html",
        mine=mine,
        assignment=found,
        problems=problems,
        table=table,
        packages=services().packages,
        learners=len(lines),
    )


def _named(
    session: Session, found: Assignment, problems: list[int], joined: dict[str, float]
) -> dict[int, dict[str, set[str]]]:
    """Problem -> name of a known mistake -> users in whose submissions it was named."""
    query = (
        select(Submission.user, Submission.problem, Submission.created_at, Judgement.verdict)
        .join(Judgement, Judgement.id == Submission.current_judgement)
        .where(
            Submission.user.in_(joined),
            Submission.problem.in_(problems),
            Submission.created_at >= found.opens_at,
            Judgement.status != Status.ACCEPTED,
        )
    )
    named: dict[int, dict[str, set[str]]] = {}
    for user, problem, at, verdict in session.execute(query):
        if at < joined[user]:
            continue
        for entry in verdict.get("diagnosis") or []:
            for name in entry["names"]:
                named.setdefault(problem, {}).setdefault(name, set()).add(user)
    return named
