"""The blueprint that all views of classes belong to."""

from __future__ import annotations

from flask import Blueprint
from werkzeug.wrappers import Response

from web.services import only_with_accounts

Page = str | Response | tuple[str, int]

blueprint = Blueprint("classes", __name__, url_prefix="/classes", template_folder="templates")


blueprint.before_request(only_with_accounts)
