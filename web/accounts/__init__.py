"""Accounts: signing in and out, passwords, one's own account. `people` is what is done with accounts, `identity` says
who is asking."""

from flask import Flask
from flask_babel import gettext

from web.accounts import identity, oidc
from web.accounts.tables import Role
from web.accounts.views import blueprint


def init_app(app: Flask) -> None:
    identity.init_app(app)
    oidc.init_app(app)
    app.register_blueprint(blueprint)
    settings = app.extensions["course"].settings
    app.jinja_env.globals.update(
        accounts=settings.accounts != "none",
        registration=settings.registration,
        role_text=role_text,
        elsewhere=settings.oidc_name if settings.oidc_issuer else "",
    )


def role_text(role: str) -> str:
    """What a role is called."""
    texts: dict[Role, str] = {
        Role.LEARNER: gettext("learner"),
        Role.TEACHER: gettext("teacher"),
        Role.ADMIN: gettext("administrator"),
    }
    return texts[Role(role)]
