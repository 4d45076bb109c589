"""Saving a draft: what the problem page's script calls while somebody writes."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, jsonify
from werkzeug.wrappers import Response

from judge.core.wording import say
from web.drafts.keeping import Kept, NewerDraft, save_draft
from web.forms import fields
from web.i18n import language
from web.limits import limiter
from web.services import package_or_404, services, user

blueprint = Blueprint("drafts", __name__)


@blueprint.put("/problems/<int:problem>/draft")
@limiter.limit("120 per minute")
def save(problem: int) -> Response | tuple[Response, int]:
    """Keep my draft: field `text` (without it: the starter is back) and `seen`, the revision that the page knows (0: none).
    Answers with the new revision; 409 with the draft there is, and nothing changed, if it is not the one that was seen;
    413 for a text that could not be submitted either."""
    package = package_or_404(problem)
    sent = fields()
    text, seen = sent.get("text"), sent.get("seen", b"")
    if not seen.isdigit() or len(seen) > 9:
        abort(400)
    limit = package.limits.source_kb * 1024
    if text is not None and len(text) > limit:
        params = {"size": len(text), "limit": limit}
        return jsonify(error=say({"code": "source_too_large", "params": params}, language())), 413
    try:
        with services().store.write() as session:
            return jsonify(_told(save_draft(session, user(), package.id, text, int(seen))))
    except NewerDraft as newer:
        text = newer.kept.text
        shown = package.starter if text is None else text.decode("utf-8", "replace")
        return jsonify(_told(newer.kept) | {"text": shown}), 409


def _told(draft: Kept) -> dict[str, Any]:
    return {"revision": draft.revision, "saved_at": draft.saved_at}
