"""The search page."""

from __future__ import annotations

from flask import Blueprint, current_app, render_template, request

from judge.store import reading
from web.search.index import Entry, make_index, search
from web.services import services, user

blueprint = Blueprint("search", __name__, template_folder="templates")
LONGEST = 200


@blueprint.get("/search")
def show() -> str:
    """What `?q=` finds among problems, chapters, their sections, and files."""
    query = request.args.get("q", "").strip()[:LONGEST]
    with services().store.read() as session:
        standing = reading.standing(session, user())
    return render_template(
        "search/show.html",
        query=query,
        groups=search(_index(), query),
        packages=services().packages,
        standing=standing,
    )


def _index() -> list[Entry]:
    """The app's index, made when it is first asked for: problems and chapters don't change while it runs."""
    index: list[Entry] | None = current_app.extensions.get("search")
    if index is None:
        index = current_app.extensions["search"] = make_index(services().packages, services().chapters)
    return index
