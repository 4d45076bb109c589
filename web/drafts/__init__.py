"""Drafts: what somebody has written to a problem and not submitted, kept on the server."""

from flask import Flask

from web.drafts.views import blueprint


def init_app(app: Flask) -> None:
    app.register_blueprint(blueprint)
