"""Tables of classes. Times are seconds since 1970 by the database's clock; what a teacher writes as a local time is in the
class's time zone and becomes such seconds at once (`times`)."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from judge.store import now
from judge.store.tables import Base


class Part(StrEnum):
    """What somebody is in a class."""

    TEACHER = "teacher"
    LEARNER = "learner"


class Class(Base):
    """A class: people, and what they are set. `archived_at`: kept for reading, nothing more is set or handed in."""

    __tablename__ = "classes"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80))
    time_zone: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[float] = mapped_column(default=now())
    archived_at: Mapped[float | None]

    __table_args__ = ({"sqlite_autoincrement": True},)


class Member(Base):
    """Somebody in a class.

    Invariants
    - Teachers see what a learner submitted to the class's assignments from `joined_at` on, and nothing of before: a
      teacher who enters somebody learns nothing of their past.
    - `account_made_here`: the account was made by this class's roster. Only then may its teachers give it a
      password, and not once its owner signs in elsewhere.
    """

    __tablename__ = "members"

    class_id: Mapped[int] = mapped_column(ForeignKey("classes.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    part: Mapped[str] = mapped_column(String(16), default=str(Part.LEARNER))
    joined_at: Mapped[float] = mapped_column(default=now())
    account_made_here: Mapped[bool] = mapped_column(default=False)


class Invitation(Base):
    """A link that lets people into a class as learners. The token itself is shown once and not kept."""

    __tablename__ = "invitations"

    id: Mapped[int] = mapped_column(primary_key=True)
    class_id: Mapped[int] = mapped_column(ForeignKey("classes.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[float] = mapped_column(default=now())
    expires_at: Mapped[float]
    most_uses: Mapped[int]
    uses: Mapped[int] = mapped_column(default=0)
    closed_at: Mapped[float | None]


class Assignment(Base):
    """Problems that a class is to solve.

    Invariants
    - `opens_at < deadline_at`; what is submitted at the very second of the deadline is in time.
    - `late_until`: None, or after the deadline; what comes in between counts `late_percent` of its points.
    - `attempts`: None, or how many submissions to each problem count (the first ones; runs of public cases don't).
    - `references_at`: when those who solved a problem may see its reference; before that nobody of the class does.
    """

    __tablename__ = "assignments"

    id: Mapped[int] = mapped_column(primary_key=True)
    class_id: Mapped[int] = mapped_column(ForeignKey("classes.id", ondelete="CASCADE"), index=True)
    title: Mapped[str] = mapped_column(String(80))
    opens_at: Mapped[float]
    deadline_at: Mapped[float]
    late_until: Mapped[float | None]
    late_percent: Mapped[int] = mapped_column(default=100)
    attempts: Mapped[int | None]
    partial: Mapped[bool] = mapped_column(default=False)
    references_at: Mapped[float | None]
    created_at: Mapped[float] = mapped_column(default=now())

    __table_args__ = ({"sqlite_autoincrement": True},)


class AssignedProblem(Base):
    """A problem of an assignment, in its place, with what it is worth."""

    __tablename__ = "assigned_problems"

    assignment_id: Mapped[int] = mapped_column(
        ForeignKey("assignments.id", ondelete="CASCADE"), primary_key=True
    )
    problem: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int]
    points: Mapped[int] = mapped_column(default=10)

    __table_args__ = (UniqueConstraint("assignment_id", "position"), Index(None, "problem"))


class Extension(Base):
    """A learner's own deadline of an assignment (`extensions` says what it means)."""

    __tablename__ = "extensions"

    assignment_id: Mapped[int] = mapped_column(
        ForeignKey("assignments.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    deadline_at: Mapped[float]


class Removal(Base):
    """Somebody whom a teacher took out of a class. Links don't let them in again; being entered does, and ends this."""

    __tablename__ = "removals"

    class_id: Mapped[int] = mapped_column(ForeignKey("classes.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    removed_at: Mapped[float] = mapped_column(default=now())


class Announcement(Base):
    """What teachers tell a class. Plain text, shown as it was written."""

    __tablename__ = "announcements"

    id: Mapped[int] = mapped_column(primary_key=True)
    class_id: Mapped[int] = mapped_column(ForeignKey("classes.id", ondelete="CASCADE"), index=True)
    author: Mapped[str] = mapped_column(String(80))
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float] = mapped_column(default=now())

    # A page that is still open names announcements by number: "Delete" must not hit the next one.
    __table_args__ = ({"sqlite_autoincrement": True},)
