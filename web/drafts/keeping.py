"""Keeping drafts: a text replaces another only for somebody who has seen that other one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from web.drafts.tables import Draft


@dataclass(frozen=True)
class Kept:
    """A draft as it was kept. `text` is None if the starter was restored."""

    text: bytes | None
    revision: int
    saved_at: float


class NewerDraft(Exception):
    """The draft was changed elsewhere since; `kept` is what it is now."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        super().__init__(f"the draft is at revision {kept.revision}")


def find_draft(session: Session, user: str, problem: int) -> Kept | None:
    """The user's draft, if they ever wrote one."""
    draft = session.get(Draft, (user, problem))
    return None if draft is None else _kept(draft)


def save_draft(session: Session, user: str, problem: int, text: bytes | None, seen: int) -> Kept:
    """Keep `text` (None: the starter is back) in place of revision `seen` (0: there was none). Raises NewerDraft, and changes
    nothing, if the draft has another revision and another text by now. Needs a session that writes."""
    draft = _locked(session, user, problem)
    if draft is None:
        made = Draft(user=user, problem=problem, text=text, revision=seen + 1)
        try:
            with session.begin_nested():
                session.add(made)
        except IntegrityError:  # another window was first
            draft = _locked(session, user, problem)
        else:
            session.refresh(made)
            return _kept(made)
    assert draft is not None
    if draft.text == text:
        return _kept(draft)
    if draft.revision != seen:
        raise NewerDraft(_kept(draft))
    draft.text, draft.revision = text, draft.revision + 1
    session.flush()
    session.refresh(draft)
    return _kept(draft)


def _kept(draft: Draft) -> Kept:
    return Kept(draft.text, draft.revision, draft.saved_at)


def _locked(session: Session, user: str, problem: int) -> Draft | None:
    query = select(Draft).where(Draft.user == user, Draft.problem == problem).with_for_update()
    return session.scalars(query).one_or_none()
