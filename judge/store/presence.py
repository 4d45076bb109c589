"""Which workers are there: each says so with its heartbeat."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from judge.store.clock import now
from judge.store.tables import Presence

GONE_S = 20.0  # four heartbeats missed
FORGOTTEN_S = 24 * 3600.0


@dataclass(frozen=True)
class Seen:
    """A worker. `is_there`: heard of within GONE_S."""

    name: str
    tier: str
    slots: int
    running: int
    started_at: float
    seen_at: float
    is_there: bool


def say(session: Session, name: str, *, tier: str, slots: int, running: int) -> None:
    """A worker is there, with that many submissions in its hands; those not heard of for a day are forgotten."""
    at = session.scalars(select(now())).one()
    row = session.get(Presence, name)
    if row is None:
        session.execute(delete(Presence).where(Presence.seen_at < at - FORGOTTEN_S))
        row = Presence(name=name, started_at=at)
        session.add(row)
    row.tier, row.slots, row.running, row.seen_at = tier, slots, running, at


def leave(session: Session, name: str) -> None:
    """A worker ends as it was told to."""
    session.execute(delete(Presence).where(Presence.name == name))


def workers(session: Session) -> list[Seen]:
    """Those heard of within a day, the latest first."""
    at = session.scalars(select(now())).one()
    rows = session.scalars(select(Presence).order_by(Presence.seen_at.desc()))
    return [
        Seen(r.name, r.tier, r.slots, r.running, r.started_at, r.seen_at, at - r.seen_at < GONE_S)
        for r in rows
        if at - r.seen_at < FORGOTTEN_S
    ]
