"""The database's clock, in SQL. Leases and deadlines are compared by one clock only, whichever machine
asks."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class now(FunctionElement[float]):
    """Seconds since 1970 (UTC) with milliseconds, as the database sees them while it runs the statement."""

    type = Double()
    inherit_cache = True


@compiles(now, "sqlite")
def _sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    return "CAST(extract(epoch from clock_timestamp()) AS DOUBLE PRECISION)"
