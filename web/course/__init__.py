"""The course: its chapters, what each brings, and the problems that belong to it."""

from flask import Flask

from web.course.views import blueprint


def init_app(app: Flask) -> None:
    app.register_blueprint(blueprint)
