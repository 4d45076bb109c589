"""How the site is, in numbers: for the staff's page and for monitoring."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select

from judge.core.status import Status
from judge.store import Judgement, Submission, now, presence
from judge.store.presence import Seen
from web.services import Services

HOUR_S = 3600.0
LITTLE_MB = 500  # less room than this on the disk is a warning


@dataclass(frozen=True)
class Health:
    """A moment's state. Times in seconds, sizes in MB (2**20 bytes). `oldest_s`: how long the one that waits longest has
    been waiting. `waited_s`, `judged_s`: means over the last hour's verdicts, None if there were none."""

    queued: int
    running: int
    oldest_s: float
    verdicts: Mapping[str, int]
    waited_s: float | None
    judged_s: float | None
    workers: list[Seen]
    disk_free_mb: int
    database_mb: float | None

    @property
    def warnings(self) -> list[str]:
        """Codes of what somebody should look at."""
        found = []
        if not any(w.is_there for w in self.workers):
            found.append("no_worker")
        if self.oldest_s > 60:
            found.append("slow")
        if self.disk_free_mb < LITTLE_MB:
            found.append("disk")
        if self.verdicts.get(str(Status.SYSTEM_ERROR)):
            found.append("system_errors")
        return found


def look(services: Services) -> Health:
    """The state now."""
    with services.store.read() as session:
        at = session.scalars(select(now())).one()
        counts: dict[str, int] = {
            status: n
            for status, n in session.execute(
                select(Submission.status, func.count())
                .where(Submission.status.in_((Status.QUEUED, Status.RUNNING)))
                .group_by(Submission.status)
            )
        }
        oldest = session.scalars(
            select(func.min(Submission.queued_at)).where(Submission.status == Status.QUEUED)
        ).one()
        lately = Judgement.created_at > at - HOUR_S
        verdicts: dict[str, int] = {
            status: n
            for status, n in session.execute(
                select(Judgement.status, func.count()).where(lately).group_by(Judgement.status)
            )
        }
        waited, judged = session.execute(
            select(func.avg(Judgement.waited_s), func.avg(Judgement.judged_s)).where(lately)
        ).one()
        seen = presence.workers(session)
    folder = services.settings.data_dir
    return Health(
        queued=counts.get(Status.QUEUED, 0),
        running=counts.get(Status.RUNNING, 0),
        oldest_s=at - oldest if oldest is not None else 0.0,
        verdicts=verdicts,
        waited_s=waited,
        judged_s=judged,
        workers=seen,
        disk_free_mb=shutil.disk_usage(folder if folder.exists() else Path.cwd()).free // 2**20,
        database_mb=_size_mb(folder / "course.db") if not services.settings.database_url else None,
    )


def _size_mb(database: Path) -> float:
    """The database with its log, which holds what was not yet written back."""
    files = [database, database.with_name(f"{database.name}-wal")]
    return sum(f.stat().st_size for f in files if f.exists()) / 2**20
