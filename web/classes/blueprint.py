"""The blueprint that all views of classes belong to."""

from __future__ import annotations

from flask import Blueprint, abort
from werkzeug.wrappers import Response

from web.services import services

Page = str | Response | tuple[str, int]

blueprint = Blueprint("classes", __name__, url_prefix="/classes", template_folder="templates")


@blueprint.before_request
def _only_with_accounts() -> None:
    if services().settings.accounts == "none":
        abort(404)
