"""Search over problems, chapters and files."""

from flask import Flask

from web.search.views import blueprint


def init_app(app: Flask) -> None:
    app.register_blueprint(blueprint)
