"""The course page and the pages of its chapters."""

from __future__ import annotations

from itertools import groupby

from flask import Blueprint, abort, render_template

from judge.store import reading
from tools.steps import tree_files
from tools.steps_track import load_track
from web.course.problems import problems_by_chapter, track_problems
from web.course.tree import folder_tree
from web.i18n import language
from web.services import services, user
from web.text import headings, render

blueprint = Blueprint("course", __name__, template_folder="templates")


@blueprint.get("/")
def index() -> str:
    """All chapters by stage, each with its problems and what I solved of them."""
    chapters = list(services().chapters.values())
    stages = [(stage, list(group)) for stage, group in groupby(chapters, lambda c: c.stage[language()])]
    return render_template(
        "course/index.html",
        stages=stages,
        problems=problems_by_chapter(),
        track=load_track(),
        tracked=track_problems(),
        standing=_standing(),
        sizes={c.number: len(tree_files(c.number)) for c in chapters},
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
        problems=problems_by_chapter().get(number, []),
        standing=_standing(),
        before=services().chapters[numbers[here - 1]] if here else None,
        after=services().chapters[numbers[here + 1]] if here + 1 < len(numbers) else None,
    )


def _standing() -> dict[int, bool]:
    with services().store.read() as session:
        return reading.standing(session, user())
