"""A class's local times. A deadline is written as the clock on its wall shows it and kept as seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from flask_babel import gettext

FORMAT = "%Y-%m-%dT%H:%M"  # what <input type="datetime-local"> sends


class TimeRefused(ValueError):
    """No such time; the text says why, in the reader's language."""


def to_seconds(text: str, zone: str) -> float:
    """Seconds since 1970 of a local time such as "2026-12-01T23:59". A time that clocks show twice, at the end of
    summer time, is the second one: a deadline is never earlier than people expect. Raises TimeRefused for a time that
    is not written so, and for one that clocks leave out."""
    text = text.strip().replace(" ", "T")
    try:
        local = datetime.strptime(text[:16], FORMAT)
    except ValueError:
        raise TimeRefused(gettext("Write date and time like 2026-12-01 23:59.")) from None
    if not 2000 <= local.year <= 2100:
        raise TimeRefused(gettext("The year must be between 2000 and 2100."))
    seconds = local.replace(tzinfo=ZoneInfo(zone), fold=1).timestamp()
    if to_local(seconds, zone) != local.strftime(FORMAT):
        raise TimeRefused(
            gettext("Clocks in %(zone)s skip this time: summer time begins. Choose another one.", zone=zone)
        )
    return seconds


def to_local(seconds: float, zone: str) -> str:
    """The local time of a moment, to the minute, as an input takes it."""
    return datetime.fromtimestamp(seconds, UTC).astimezone(ZoneInfo(zone)).strftime(FORMAT)


def shown(seconds: float, zone: str) -> str:
    """The local time of a moment, for reading."""
    return f"{to_local(seconds, zone).replace('T', ' ')} ({zone})"
