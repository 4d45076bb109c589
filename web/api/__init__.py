"""`/api/v1`: the site for programs. Tokens, endpoints, the OpenAPI document and a page that says the same to people."""

from __future__ import annotations

from flask_openapi3.openapi import OpenAPI
from flask_wtf import CSRFProtect

from web.api import errors, page, problem_views, submission_views, token_views  # noqa: F401  they add their views
from web.api.blueprint import blueprint


def init_app(app: OpenAPI, csrf: CSRFProtect) -> None:
    """Called after `guard.init_app`. The API knows no cookies, so there is nothing for CSRF to protect there."""
    errors.init_app(app)
    app.register_api(blueprint)
    csrf.exempt(blueprint)
    app.register_blueprint(page.blueprint)
    app.register_blueprint(token_views.blueprint)
