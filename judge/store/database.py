"""How the database is reached. For SQLite there are two engines: one that can only read, and one whose
transactions take the write lock at their start. A transaction that reads first and writes later would fail
at once when another writer came between, whatever the timeout; one that begins with the lock waits its
turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.orm import Session

MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_TIMEOUT_MS = 5000


class Store:
    """Sessions on one database.

    Invariants
    - what `read()` yields cannot write; what `write()` yields holds SQLite's write lock from its first
      statement (so nothing slow happens inside: no rendering, no streaming, no judging).
    - `write()` commits on a normal exit and rolls back on an exception.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_sqlite = make_url(url).get_backend_name() == "sqlite"
        if self.is_sqlite:
            self._read = _sqlite_engine(url, begin="BEGIN", query_only=True)
            self._write = _sqlite_engine(url, begin="BEGIN IMMEDIATE", query_only=False)
        else:
            self._write = create_engine(url, pool_pre_ping=True)
            self._read = self._write.execution_options(postgresql_readonly=True)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session for reading; it sees one state of the database from its first query to its end."""
        with Session(self._read) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session in one transaction that writes. Objects stay readable after it."""
        with Session(self._write, expire_on_commit=False) as session, session.begin():
            yield session

    def migrate(self) -> None:
        """Bring the database to the newest schema; makes it if there is none. Only one process may do this
        at a time: the one that starts the others."""
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        config.attributes["engine"] = self._write
        command.upgrade(config, "head")

    def close(self) -> None:
        self._read.dispose()
        self._write.dispose()


def _sqlite_engine(url: str, *, begin: str, query_only: bool) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA query_only={'ON' if query_only else 'OFF'}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine
