"""The queue, and judging again: one submission, or all of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import abort, flash, redirect, render_template, request, url_for
from flask_babel import gettext, ngettext
from sqlalchemy import select

from judge.core.status import Status
from judge.replay import differences
from judge.store import Judgement, Submission
from judge.store.fairness import ACTIVE
from web.accounts import people
from web.admin.blueprint import Page, blueprint, me
from web.services import services

MOST_SHOWN = 200
MOST_AGAIN = 10_000


@blueprint.get("/queue")
def queue() -> str:
    """What runs and what waits, the order of turns as far as it is known."""
    query = (
        select(Submission)
        .where(Submission.status.in_(ACTIVE))
        .order_by(Submission.status != Status.RUNNING, Submission.priority, Submission.queued_at)
        .limit(MOST_SHOWN)
    )
    with services().store.read() as session:
        rows = session.scalars(query).all()
    return render_template("admin/queue.html", rows=rows, packages=services().packages, most=MOST_SHOWN)


@dataclass(frozen=True)
class Entry:
    """A judgement; `counts`: it is the one that counts; `differs`: in what it differs from the one before."""

    judgement: Judgement
    counts: bool
    differs: list[str]


@blueprint.get("/submissions/<int:number>")
def submission(number: int) -> str:
    """All judgements of a submission, and in what each differs from the one before."""
    with services().store.read() as session:
        row = session.get(Submission, number) if number < 2**63 else None
        if row is None:
            abort(404)
        found = session.scalars(
            select(Judgement).where(Judgement.submission == number).order_by(Judgement.id)
        ).all()
    entries: list[Entry] = []
    for judgement in found:
        differs = differences(entries[-1].judgement.verdict, judgement.verdict) if entries else []
        entries.append(Entry(judgement, judgement.id == row.current_judgement, differs))
    package = services().packages.get(row.problem)
    return render_template("admin/submission.html", row=row, entries=entries, package=package)


@blueprint.post("/submissions/<int:number>/again")
def again(number: int) -> Page:
    """Judge a submission again: by the version it was judged by (a replay), or by today's (field `version`)."""
    with services().store.read() as session:
        row = session.get(Submission, number) if number < 2**63 else None
    if row is None:
        abort(404)
    package = services().packages.get(row.problem)
    current = request.form.get("version") == "current"
    if current and package is None:
        abort(409)
    version = package.version if current and package is not None else row.version
    count = services().queue.rejudge([number], {row.problem: version})
    _note_again(f"submission {number}", count, version)
    return redirect(url_for(".submission", number=number), 303)


@blueprint.post("/problems/<int:problem>/again")
def again_all(problem: int) -> Page:
    """Judge all submissions to a problem again, by today's version."""
    package = services().packages.get(problem)
    if package is None:
        abort(404)
    with services().store.read() as session:
        numbers = list(
            session.scalars(
                select(Submission.id)
                .where(Submission.problem == problem, Submission.finished_at.is_not(None))
                .limit(MOST_AGAIN)
            )
        )
    count = services().queue.rejudge(numbers, {problem: package.version})
    _note_again(f"problem {problem}", count, package.version)
    return redirect(url_for(".queue"), 303)


def _note_again(target: str, count: int, version: str) -> None:
    services().ring()
    with services().store.write() as session:
        people.note(session, me().key, "judged_again", target, count=count, version=version)
    if count:
        flash(ngettext("%(num)d submission is judged again.", "%(num)d submissions are judged again.", count))
    else:
        flash(gettext("Nothing to judge again: no submission there has a verdict."), "error")


@blueprint.app_template_filter("verdict_parts")
def shown_fields(differs: list[str]) -> str:
    """Names of the parts of a verdict, for reading."""
    names: dict[str, Any] = {
        "status": gettext("verdict"),
        "passed": gettext("cases"),
        "total": gettext("cases"),
        "cases": gettext("single cases"),
        "diagnosis": gettext("diagnosis"),
        "counterexample": gettext("counterexample"),
    }
    return ", ".join(dict.fromkeys(str(names[d]) for d in differs))
