"""Problems: the page on which one is read and solved."""

from flask import Flask

from web.problems.views import blueprint


def init_app(app: Flask) -> None:
    app.register_blueprint(blueprint)
