"""Submissions and what became of them. The row of a submission is the queue: it is committed before
anything else hears of it, claimed under a lease, and finished once.

`tables` says what is kept, `database` how it is reached, `queue` how a submission moves, `reading` what
pages ask for, `bell` how a worker is woken. Nothing here knows how code is judged or how a page looks.
"""

from judge.store.clock import now
from judge.store.database import Store
from judge.store.queue import Claim, Queue, TooManyQueued
from judge.store.settings import StoreSettings
from judge.store.tables import Base, CaseProgress, Judgement, Submission

__all__ = [
    "Base",
    "CaseProgress",
    "Claim",
    "Judgement",
    "Queue",
    "Store",
    "StoreSettings",
    "Submission",
    "TooManyQueued",
    "now",
]
