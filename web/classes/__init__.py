"""Classes: a teacher's people, assignments, grade book and announcements; a learner's deadlines."""

from flask import Flask

from web.classes import assignment_views, grade_views, people_views, times, views  # noqa: F401  they add their views
from web.classes.blueprint import blueprint
from web.classes.join_views import joining


def init_app(app: Flask) -> None:
    app.register_blueprint(blueprint)
    app.register_blueprint(joining)
    app.jinja_env.globals["local_time"] = times.shown
