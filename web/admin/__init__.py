"""Staff: accounts, the queue and its workers, problem packages, judging again, the audit log; and what monitoring reads."""

from flask import Flask

from web.admin import accounts_views, judging_views, ops, views  # noqa: F401  they add their views
from web.admin.blueprint import blueprint


def init_app(app: Flask) -> None:
    app.register_blueprint(blueprint)
    ops.init_app(app)
