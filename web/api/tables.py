"""The table of tokens, on the metadata of `judge.store`. Times are seconds since 1970 by the database's clock."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from judge.store import now
from judge.store.tables import Base


class Token(Base):
    """What a program shows in place of a session: it acts for the account of `user_id`, through the API only.

    Invariants
    - the token itself is not kept, only its SHA-256; it is drawn with 256 bits, so the hash needs no salt.
    - it opens nothing once `revoked_at` is set, `expires_at` has passed, or its account is closed.
    - `last_used_at` is true to a minute.
    """

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(80))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[float] = mapped_column(default=now())
    last_used_at: Mapped[float | None]
    expires_at: Mapped[float]
    revoked_at: Mapped[float | None]

    __table_args__ = (Index(None, "user_id"), {"sqlite_autoincrement": True})
