"""The course page and the pages of its chapters."""

from __future__ import annotations

from itertools import groupby

from flask import Blueprint, abort, render_template

from judge.store import reading
from tools.steps import tree_files
from tools.steps_manifest import ROOT
from tools.steps_needs import builds_on
from tools.steps_track import load_track
from web.course.files import (
    added_symbols,
    brought_by,
    changes,
    explained_in,
    file_lines,
    page_files,
    targets,
)
from web.course.problems import course_problems, problems_by_chapter, track_problems
from web.course.progress import next_problem, progress
from web.course.tree import file_mark, folder_tree
from web.i18n import language
from web.services import services, user
from web.text import code_lines, headings, render

blueprint = Blueprint("course", __name__, template_folder="templates")


@blueprint.get("/")
def index() -> str:
    """The map of the course: chapters by stage with what they build on, what I solved of each, and what comes next."""
    chapters = list(services().chapters.values())
    stages = [(stage, list(group)) for stage, group in groupby(chapters, lambda c: c.stage[language()])]
    problems, tracked = problems_by_chapter(), track_problems()
    with services().store.read() as session:
        standing = reading.standing(session, user())
        latest = reading.history(session, user(), limit=1)
    course = course_problems()
    return render_template(
        "course/index.html",
        stages=stages,
        problems=problems,
        track=load_track(),
        tracked=tracked,
        standing=standing,
        sizes={c.number: len(tree_files(c.number)) for c in chapters},
        needs={c.number: builds_on(c.number) for c in chapters},
        progress=lambda *chapters: progress(
            [p for c in chapters for p in problems.get(c.number, [])], standing
        ),
        track_progress=progress(tracked, standing),
        whole=progress(course, standing),
        next=next_problem(course, standing, latest[0].problem if latest else None),
    )


@blueprint.get("/chapters/<int:number>")
def chapter(number: int) -> str:
    """One chapter: its text as far as it is written, its tree, its problems."""
    chapter = services().chapters.get(number)
    if chapter is None:
        abort(404)
    path = chapter.text(language())
    source = path.read_text("utf-8") if path.is_file() else None
    numbers = list(services().chapters)
    here = numbers.index(number)
    return render_template(
        "course/chapter.html",
        chapter=chapter,
        text=render(source) if source is not None else None,
        contents=headings(source) if source is not None else [],
        tree=folder_tree(chapter, tree_files(number)),
        changes=changes(chapter),
        needs=[services().chapters[n] for n in builds_on(number)],
        main=code_lines((ROOT / chapter.main).read_text("utf-8")) if chapter.main else None,
        output=chapter.output.read_text("utf-8") if chapter.output.is_file() else None,
        problems=problems_by_chapter().get(number, []),
        standing=_standing(),
        before=services().chapters[numbers[here - 1]] if here else None,
        after=services().chapters[numbers[here + 1]] if here + 1 < len(numbers) else None,
    )


@blueprint.get("/chapters/<int:number>/files/<path:path>")
def file(number: int, path: str) -> str:
    """One file of a chapter's tree."""
    chapter = services().chapters.get(number)
    if chapter is None or path not in page_files(chapter):
        abort(404)
    added, held = added_symbols(chapter, path), targets(path)
    kinds = {line: "added" for symbol in added for line in range(symbol.first, symbol.last + 1)}
    kinds |= {n: "target" for t in held if t.symbol for n in range(t.symbol.first, t.symbol.last + 1)}
    return render_template(
        "course/file.html",
        chapter=chapter,
        path=path,
        lines=file_lines(path),
        kinds=kinds,
        mark=file_mark(chapter, path),
        added=added,
        targets=held,
        brought=brought_by(chapter, path),
        explained=explained_in(path),
        standing=_standing(),
    )


def _standing() -> dict[int, bool]:
    with services().store.read() as session:
        return reading.standing(session, user())
