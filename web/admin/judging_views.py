"""The queue, and judging again: one submission, or all of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import abort, redirect, render_template, request, url_for
from flask_babel import gettext
from sqlalchemy import select

from judge.core.status import Status
from judge.replay import differences
from judge.store import Judgement, Submission, reading
from judge.store.fairness import ACTIVE
from web.admin.blueprint import Page, blueprint, me
from web.judging_again import judge_again
from web.services import services

MOST_SHOWN = 200


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
        judged_by = reading.judged_by(session, number) or row.version
    entries: list[Entry] = []
    for judgement in found:
        differs = differences(entries[-1].judgement.verdict, judgement.verdict) if entries else []
        entries.append(Entry(judgement, judgement.id == row.current_judgement, differs))
    package = services().packages.get(row.problem)
    return render_template(
        "admin/submission.html", row=row, entries=entries, package=package, judged_by=judged_by
    )


@blueprint.post("/submissions/<int:number>/again")
def again(number: int) -> Page:
    """Judge a submission again: by the version it was judged by (a replay), or by today's (field `version`)."""
    with services().store.read() as session:
        row = session.get(Submission, number) if number < 2**63 else None
        judged_by = reading.judged_by(session, number) if row is not None else None
    if row is None:
        abort(404)
    package = services().packages.get(row.problem)
    current = request.form.get("version") == "current"
    if current and package is None:
        abort(409)
    version = package.version if current and package is not None else judged_by or row.version
    judge_again(me().key, f"submission {number}", {row.problem: version}, [number])
    return redirect(url_for(".submission", number=number), 303)


@blueprint.post("/problems/<int:problem>/again")
def again_all(problem: int) -> Page:
    """Judge all submissions to a problem again, by today's version."""
    package = services().packages.get(problem)
    if package is None:
        abort(404)
    with services().store.read() as session:
        numbers = reading.with_verdicts(session, problem)
    judge_again(me().key, f"problem {problem}", {problem: package.version}, numbers)
    return redirect(url_for(".queue"), 303)


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
