"""The reference of a problem and what its known mistakes are: for those who have solved it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup
from sqlalchemy.orm import Session

from judge.packages import Package
from judge.store import reading
from web.accounts.identity import identity
from web.classes import references
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
    """Whether whoever asks may see how the problem is solved: once they have solved it themselves and no class of theirs
    hides it; a teacher always. The one place that decides it."""
    if teaches():
        return True
    with services().store.read() as session:
        return _hidden_until(session, package) is None and reading.is_solved(session, user(), package.id)


def hidden_until(package: Package) -> float | None:
    """Until when a class of mine hides this reference, in seconds since 1970; None if none does."""
    with services().store.read() as session:
        return None if teaches() else _hidden_until(session, package)


def teaches() -> bool:
    """True for accounts of teachers. The one user of local mode is a learner here."""
    who = identity()
    return who is not None and who.number is not None and who.is_teacher


def _hidden_until(session: Session, package: Package) -> float | None:
    who = identity()
    return (
        references.hidden_until(session, who.number, package.id) if who is not None and who.number else None
    )


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
