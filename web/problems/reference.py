"""The reference of a problem and what its known mistakes are: for those who have solved it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from judge.packages import Package
from judge.store import reading
from web.course.sections import section_link
from web.i18n import language
from web.services import services, user
from web.text import code_lines, render_inline


@dataclass(frozen=True)
class Mistake:
    """A known mistake as a page shows it. `section`: (address, heading) of what explains it."""

    name: str
    text: Markup
    section: tuple[str, str] | None
    lines: list[Markup]


def may_see_reference(package: Package) -> bool:
    """Whether whoever asks may see how the problem is solved: once they have solved it themselves. The one place that
    decides it."""
    with services().store.read() as session:
        return reading.is_solved(session, user(), package.id)


def mistakes(package: Package) -> list[Mistake]:
    """The known mistakes of a problem, in the order of its package."""
    return [
        Mistake(
            wrong.name,
            render_inline(wrong.diagnosis[language()]),
            section_link(wrong.section),
            code_lines(wrong.source),
        )
        for wrong in package.wrong.values()
    ]
