"""Where a diagnosis points: `ch17#fast-paths` as an address and the words of its heading."""

from __future__ import annotations

from flask import url_for

from tools.steps_track import find_section
from web.i18n import language
from web.services import services


def section_link(section: str) -> tuple[str, str] | None:
    """(address, heading) of a section. An anchor that the chapter does not list leads to the chapter's top; a track has
    no page, so a section of it is its heading on the page of all problems. None if there is nothing to point at."""
    place = find_section(section)
    if place is not None and place.chapter is not None:
        address = url_for("course.chapter", number=place.chapter, _anchor=place.anchor)
        return address, place.heading[language()]
    if place is not None:
        return url_for("problems.index"), place.heading[language()]
    number = section.partition("#")[0].removeprefix("ch")
    chapter = services().chapters.get(int(number)) if number.isdecimal() else None
    if chapter is None:
        return None
    return url_for("course.chapter", number=chapter.number), chapter.title[language()]
