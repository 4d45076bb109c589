"""What a site forgets, and when: old submissions with their verdicts, accounts that nobody uses any more."""

from __future__ import annotations

from sqlalchemy import ColumnElement, delete, exists, func, or_, select
from sqlalchemy.orm import Session

from judge.store import Store, Submission, now
from judge.store.fairness import ACTIVE
from web.accounts import people
from web.accounts.tables import Event, Role, User, key_in_sql
from web.api.tables import Token
from web.classes.tables import Class, Member

DAY_S = 24 * 3600.0
BATCH = 500  # rows a transaction: whoever submits meanwhile waits for one of them at most


def old_submissions(store: Store, days: float, *, dry: bool, actor: str) -> int:
    """Delete what arrived more than `days` ago and has ended, verdicts included; returns how many. Those who are in a
    class that is not archived keep theirs: it may count for an assignment. `dry`: only count."""
    in_class = (
        select(Member.user_id)
        .join(Class, Class.id == Member.class_id)
        .where(Class.archived_at.is_(None), key_in_sql(Member.user_id) == Submission.user)
    )
    old = (
        Submission.created_at < now() - days * DAY_S,
        Submission.status.not_in(ACTIVE),
        ~exists(in_class),
    )
    if dry:
        with store.read() as session:
            return session.scalars(select(func.count()).select_from(Submission).where(*old)).one()
    done = 0
    while True:
        with store.write() as session:
            numbers = list(session.scalars(select(Submission.id).where(*old).limit(BATCH)))
            session.execute(delete(Submission).where(Submission.id.in_(numbers)))
            if not numbers:
                return done
            people.note(session, actor, Event.SUBMISSIONS_FORGOTTEN, "site", count=len(numbers), days=days)
        done += len(numbers)


def unused_accounts(store: Store, days: float, *, dry: bool, actor: str) -> list[str]:
    """Delete learners' accounts that were not used for `days`, with all they submitted; returns their sign-in names. Use
    is signing in, submitting (a session may last for months) and what a token does. Who is in a class that is not
    archived stays. `dry`: only name them."""
    limit = now() - days * DAY_S
    in_class = (
        select(Member.user_id).join(Class, Class.id == Member.class_id).where(Class.archived_at.is_(None))
    )
    unused = (
        User.role == Role.LEARNER,
        or_(User.last_seen_at < limit, User.last_seen_at.is_(None) & (User.created_at < limit)),
        User.id.not_in(in_class),
        ~exists().where(key_in_sql(User.id) == Submission.user, Submission.created_at >= limit),
        ~exists().where(Token.user_id == User.id, Token.last_used_at >= limit),
    )
    with store.read() as session:
        found = list(session.scalars(select(User).where(*unused).order_by(User.login)))
    if dry:
        return [user.login for user in found]
    gone = []
    for user in found:
        with store.write() as session:
            if _remove_still_unused(session, user.id, unused, actor):
                gone.append(user.login)
    return gone


def _remove_still_unused(
    session: Session, number: int, unused: tuple[ColumnElement[bool], ...], actor: str
) -> bool:
    user = session.scalars(select(User).where(User.id == number, *unused)).one_or_none()
    if user is not None:
        people.remove(session, user, actor)
    return user is not None
