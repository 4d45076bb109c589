"""The problem page: statement, editor, results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, abort, render_template, request

from judge.core.source import SourceError, decode_source
from judge.packages import Package
from judge.store import reading
from tools.steps_track import in_track, load_track
from web.course.problems import onward, problems_by_chapter, track_problems
from web.drafts.keeping import Kept, find_draft
from web.i18n import language
from web.problems.names import given_names
from web.problems.phrases import editor_phrases
from web.problems.reference import hidden_until, may_see_reference, mistakes
from web.services import package_or_404, services, user
from web.text import code_lines, render
from web.verdicts import present

# Number of the chapter (none: a track), its title by language, its problems.
Group = tuple[int | None, Mapping[str, str], list[Package]]

blueprint = Blueprint("problems", __name__, url_prefix="/problems", template_folder="templates")


@blueprint.get("")
def index() -> str:
    """All problems, and what I solved."""
    with services().store.read() as session:
        standing = reading.standing(session, user())
    chapters = services().chapters
    groups: list[Group] = [(n, chapters[n].title, found) for n, found in problems_by_chapter().items()]
    if tracked := track_problems():
        groups.append((None, load_track().title, tracked))
    return render_template("problems/index.html", groups=groups, standing=standing)


@blueprint.get("/<int:problem>")
def show(problem: int) -> str:
    """The page of one problem. The editor opens with my draft; with `?from=ID`, with the text of that submission."""
    package = package_or_404(problem)
    return problem_page(package, editor_text=_text_of_submission(package))


@blueprint.get("/<int:problem>/solution")
def solution(problem: int) -> str | tuple[str, int]:
    """The reference, my own accepted solutions, and the known mistakes; 404 with an explanation before I may see them."""
    package = package_or_404(problem)
    if not may_see_reference(package):
        with services().store.read() as session:
            solved = reading.is_solved(session, user(), package.id)
        return render_template(
            "problems/unsolved.html", package=package, hidden_until=hidden_until(package), solved=solved
        ), 404
    with services().store.read() as session:
        accepted = reading.accepted_sources(session, user(), package.id)
    return render_template(
        "problems/solution.html",
        package=package,
        lines=code_lines(package.solution),
        mine=[(number, at, code_lines(shown_source(source))) for number, at, source in accepted],
        mistakes=mistakes(package),
        next=onward(package.id).next,
    )


def problem_page(package: Package, *, editor_text: str | None, error: str | None = None) -> str:
    """The rendered page. `editor_text` None: the draft, or the starter if there is none. `error` is shown above the editor:
    why a text was not taken."""
    with services().store.read() as session:
        draft = find_draft(session, user(), package.id)
        history = reading.history(session, user(), package.id)
        latest = reading.find(session, user(), history[0].id) if history else None
    return render_template(
        "problems/show.html",
        package=package,
        track=load_track() if in_track(package.id) else None,
        reference=may_see_reference(package),
        statement=render(package.statement(language())),
        cases=[_case(package, case) for case in package.public],
        editor_text=editor_text if editor_text is not None else _draft_text(package, draft),
        fixed=editor_text is not None,
        draft=draft,
        names=given_names(package, language()),
        phrases=editor_phrases(),
        error=error,
        history=history,
        latest=present(latest, package) if latest else None,
    )


def _draft_text(package: Package, draft: Kept | None) -> str:
    return package.starter if draft is None or draft.text is None else shown_source(draft.text)


def _case(package: Package, case: Any) -> dict[str, Any]:
    return {
        "name": case.name,
        "inputs": case.inputs,
        "expected": case.expected,
        "note": (case.note or {}).get(language(), ""),
        "picture": package.picture,
    }


def _text_of_submission(package: Package) -> str | None:
    wanted = request.args.get("from")
    if wanted is None:
        return None
    if not wanted.isdecimal() or len(wanted) > 18:
        abort(404)
    with services().store.read() as session:
        found = reading.find(session, user(), int(wanted))
    if found is None or found.problem != package.id:
        abort(404)
    return shown_source(found.source)


def shown_source(source: bytes) -> str:
    """A submission's text for reading: as the judge reads it if it can, else with marks for what is no
    text."""
    try:
        return decode_source(source, max_bytes=len(source))
    except SourceError:
        return source.decode("utf-8", "replace").replace("\0", "\N{SYMBOL FOR NULL}")
