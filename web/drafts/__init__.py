"""Drafts: what somebody has written to a problem and not submitted, kept on the server. They go with their account."""

from typing import Any

from flask import Flask
from sqlalchemy import delete, event

from web.accounts.tables import User
from web.drafts.tables import Draft
from web.drafts.views import blueprint


def init_app(app: Flask) -> None:
    app.register_blueprint(blueprint)


@event.listens_for(User, "after_delete")
def _forget(mapper: Any, connection: Any, user: User) -> None:
    connection.execute(delete(Draft).where(Draft.user == user.key))
