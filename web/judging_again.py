"""Having submissions judged again, by staff and teachers alike: queued and written down in one transaction, or, of many,
so many at a time that others who write don't wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flask import flash
from flask_babel import gettext, ngettext

from judge.store.queue import MOST_AGAIN
from web.accounts import people
from web.accounts.tables import Event
from web.services import services


def judge_again(actor: str, target: str, versions: Mapping[int, str], submissions: Sequence[int]) -> None:
    """Queue the submissions to the problems of `versions`, by those versions, and tell how many they were. `actor`,
    `target`: as the audit log names them."""
    told = {"version": next(iter(versions.values()))} if len(versions) == 1 else {}
    count = 0
    for start in range(0, len(submissions), MOST_AGAIN):
        with services().store.write() as session:
            some = services().queue.rejudge(session, versions, submissions[start : start + MOST_AGAIN])
            if some:
                people.note(session, actor, Event.JUDGED_AGAIN, target, count=some, **told)
        count += some
        services().ring()
    if count:
        flash(ngettext("%(num)d submission is judged again.", "%(num)d submissions are judged again.", count))
    else:
        flash(gettext("Nothing to judge again: no submission there has a verdict."), "error")
