"""The blueprint of the staff's pages: for administrators alone, and for the one user of local mode."""

from __future__ import annotations

from flask import Blueprint, abort
from werkzeug.wrappers import Response

from web.accounts.identity import Identity, identity

Page = str | Response | tuple[str, int]

blueprint = Blueprint("admin", __name__, url_prefix="/admin", template_folder="templates")


@blueprint.before_request
def _only_for_admins() -> None:
    who = identity()
    if who is None or not who.is_admin:
        abort(403)


def me() -> Identity:
    """The administrator who asks."""
    who = identity()
    if who is None:
        abort(401)
    return who
