"""The table of drafts, on the metadata of `judge.store`."""

from __future__ import annotations

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from judge.store import now
from judge.store.tables import Base


class Draft(Base):
    """What one user has written to one problem.

    Invariants
    - `revision` grows by one with every change and never otherwise, so whoever names it has seen this very text.
    - `text` is None after the starter was restored: there is nothing to keep, but that, too, is newer than what was before.
    """

    __tablename__ = "drafts"

    user: Mapped[str] = mapped_column(String(64), primary_key=True)
    problem: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[bytes | None]
    revision: Mapped[int]
    saved_at: Mapped[float] = mapped_column(default=now(), onupdate=now())
