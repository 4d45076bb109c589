"""Where a diagnosis points: `ch17#fast-paths` as an address and the words of its heading."""

from __future__ import annotations

from flask import url_for

from web.i18n import language
from web.services import services


def section_link(section: str) -> tuple[str, str] | None:
    """(address, heading) of a section of a chapter; None if there is no such chapter. An anchor that the
    chapter does not list leads to the chapter's top."""
    folder, _, anchor = section.partition("#")
    number = folder.removeprefix("ch")
    chapter = services().chapters.get(int(number)) if number.isdecimal() else None
    if chapter is None:
        return None
    heading = chapter.sections.get(anchor)
    if heading is None:
        return url_for("course.chapter", number=chapter.number), chapter.title[language()]
    return url_for("course.chapter", number=chapter.number, _anchor=anchor), heading[language()]
