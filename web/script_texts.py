"""Sentences that scripts show, in the reader's language; `{name}` is filled by the script
(`src/texts.ts`)."""

from __future__ import annotations

from flask import Flask
from flask_babel import gettext

from judge.core.wording import say
from web.i18n import language


def init_app(app: Flask) -> None:
    app.jinja_env.globals["script_texts"] = script_texts


def script_texts() -> dict[str, str]:
    """Key in the scripts -> sentence."""
    return {
        "progress": gettext("%(done)s of %(total)s", done="{done}", total="{total}"),
        "too_large": say(
            {"code": "source_too_large", "params": {"size": "{size}", "limit": "{limit}"}}, language()
        ),
        "not_sent": gettext("It could not be sent: the site does not answer. Your text is kept; try again."),
        "not_shown": gettext(
            "It was sent, but its result cannot be shown now: the site does not answer. It stands under “My submissions”."
        ),
        "choose_file": gettext("Choose a file …"),
        "other_file": gettext("Choose another file …"),
        "copied": gettext("Copied"),
        "not_copied": gettext("It could not be copied: select it and copy it by hand."),
        "table": gettext("Page table: where each token of a row lies in the pool"),
        "table_help": gettext(
            "Coloured: tokens of a request; framed: those computed in this step. A line stands after every "
            "%(size)s tokens, where a page ends.",
            size="{size}",
        ),
        "table_help_one": gettext("Coloured: tokens of a request; framed: those computed in this step."),
        "pool": gettext("Pool: which request reads which page"),
        "pool_tokens": gettext("Pool, in pages of one token: which request reads which position"),
        "arrays": gettext("The arrays, cut by request"),
        "arrays_help": gettext(
            "✗ marks what differs, ∅ what is missing. Letters name the requests in batch order."
        ),
        "cut_unusable": gettext(
            "Your %(field)s cannot be used to cut the list: it has the wrong length, falls, "
            "or points past the end.",
            field="{field}",
        ),
        "row": gettext("row %(row)s", row="{row}"),
        "row_of": gettext("row %(row)s: %(letter)s", row="{row}", letter="{letter}"),
        "right": gettext("right"),
        "yours": gettext("yours"),
        "missing": gettext("missing"),
        "not_drawable": gettext("not a list of numbers"),
        "token_unused": gettext("not used by a request"),
        "token_cached": gettext(
            "request %(letter)s, token %(at)s, in the cache", letter="{letter}", at="{at}"
        ),
        "token_new": gettext(
            "request %(letter)s, token %(at)s, new in this step", letter="{letter}", at="{at}"
        ),
    }
