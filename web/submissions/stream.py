"""Watching a submission while it is judged. The store is asked again and again in short reads, so a stream
holds a thread but no transaction."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from judge.core.verdict import Json
from judge.core.wording import say, say_status
from judge.store import Store, reading
from judge.store.reading import Details

POLL_S = 0.02  # a look costs the store half a millisecond
WAITING_POLL_S = 0.25  # while others are before it
KEEPALIVE_S = 10.0
LONGEST_S = 120.0  # then the browser connects again, which frees the threads of those who left


class TooManyStreams(Exception):
    """The user has as many live views open as they may."""


class Streams:
    """Counts the open streams of each user in this process.

    Invariants
    - a stream counts from `open` until its body is closed, however that comes about.
    """

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()

    def open(self, user: str, most: int, events: Iterator[str]) -> Iterator[str]:
        """`events`, counted. Raises TooManyStreams if the user has `most` open."""
        with self._lock:
            if self._open[user] >= most:
                raise TooManyStreams
            self._open[user] += 1
        return _Counted(self, user, events)

    def close(self, user: str) -> None:
        with self._lock:
            self._open[user] -= 1


class _Counted:
    """An iterator that gives its place back when it ends or the server closes it, also if it never began."""

    def __init__(self, streams: Streams, user: str, events: Iterator[str]) -> None:
        self._streams, self._user, self._events = streams, user, events
        self._closed = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            return next(self._events)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._streams.close(self._user)


def state(store: Store, found: Details, after: tuple[int, int], lang: str) -> dict[str, Any]:
    """What a watcher who has seen everything up to `after` (attempt, case) needs to know next."""
    with store.read() as session:
        cases = _new_cases(session, found, after)
    return _state(found, lang) | {"cases": [_case(seq, case, lang) for seq, case in cases]}


def watch(store: Store, user: str, submission: int, after: tuple[int, int], lang: str) -> Iterator[str]:
    """Server-sent events: `state` when it changes, `case` for each new case, `end` with the verdict."""
    ends = time.monotonic() + LONGEST_S
    spoken = time.monotonic()
    last_state: dict[str, Any] | None = None
    yield "retry: 1000\n\n"
    while time.monotonic() < ends:
        with store.read() as session:
            found = reading.find(session, user, submission)
            cases = _new_cases(session, found, after) if found else []
        if found is None:
            return
        now = _state(found, lang)
        if now != last_state:
            last_state = now
            yield _event("state", now)
            spoken = time.monotonic()
        for seq, case in cases:
            after = (found.attempt, seq)
            yield _event("case", _case(seq, case, lang), f"{found.attempt}.{seq}")
            spoken = time.monotonic()
        if found.status.is_final:
            yield _event("end", {})
            return
        if time.monotonic() - spoken > KEEPALIVE_S:
            yield ": still here\n\n"
            spoken = time.monotonic()
        time.sleep(WAITING_POLL_S if found.ahead else POLL_S)


def _new_cases(session: Any, found: Details, after: tuple[int, int]) -> list[tuple[int, dict[str, Json]]]:
    known = after[1] if after[0] == found.attempt else 0
    return reading.progress(session, found.id, found.attempt, known)


def _state(found: Details, lang: str) -> dict[str, Any]:
    return {
        "status": str(found.status),
        "text": say_status(found.status, lang),
        "final": found.status.is_final,
        "attempt": found.attempt,
        "ahead": found.ahead,
        "total": found.total,
    }


def _case(seq: int, case: dict[str, Json], lang: str) -> dict[str, Any]:
    hidden = case["group"] == "hidden"
    message = case["message"]
    return {
        "seq": seq,
        "status": case["status"],
        "text": say_status(case["status"], lang),
        "name": "" if hidden else case["name"].removeprefix("public/"),
        "message": say(message, lang, hidden=hidden) if message else "",
    }


def _event(name: str, data: dict[str, Any], number: str | None = None) -> str:
    body = json.dumps(data, ensure_ascii=False)
    return (f"id: {number}\n" if number else "") + f"event: {name}\ndata: {body}\n\n"
