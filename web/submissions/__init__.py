"""Submissions: sending one, watching it, reading its verdict, and the list of mine."""

from flask import Flask

from web.submissions.stream import Streams
from web.submissions.views import blueprint


def init_app(app: Flask) -> None:
    app.extensions["streams"] = Streams()
    app.register_blueprint(blueprint)
