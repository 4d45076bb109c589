"""Classes: a teacher's people, assignments, grade book and announcements; a learner's deadlines."""

from flask import Flask

from web.accounts import people
from web.classes import roster, times


def init_app(app: Flask) -> None:
    # Here, not above: the views need the pages of problems, which ask `references` of this package.
    from web.classes import (  # noqa: F401  they add their views
        assignment_views,
        grade_views,
        learner_views,
        people_views,
        submission_views,
        views,
    )
    from web.classes.blueprint import blueprint
    from web.classes.join_views import joining

    if roster.only_teacher_of not in people.OBSTACLES:
        people.OBSTACLES.append(roster.only_teacher_of)
    app.register_blueprint(blueprint)
    app.register_blueprint(joining)
    app.jinja_env.globals["assignments_due"] = views.assignments_due
    app.jinja_env.globals["local_time"] = times.shown
    app.jinja_env.filters["points"] = points


def points(number: float) -> str:
    """Points without zeros behind the point: 10, 7.5, 3.33."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
