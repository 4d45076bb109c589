"""Local mode: one user on this machine, no login. The session begins with the start address, which holds a token that
only the terminal shows; `guard` asks every request for it. A site with accounts uses the same address once: whoever
has it makes the first administrator."""

from __future__ import annotations

import hmac

from flask import Blueprint, Flask, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from web.services import services

blueprint = Blueprint("local", __name__)


def init_app(app: Flask) -> None:
    app.register_blueprint(blueprint)


def token_is_right(given: str) -> bool:
    """True if that is the token of the start address."""
    token = services().settings.token.get_secret_value()
    return bool(token) and hmac.compare_digest(given.encode(), token.encode())


@blueprint.get("/enter")
def enter() -> Response | tuple[str, int]:
    """The start address: a right token opens a session, and leaves the address bar."""
    if not token_is_right(request.args.get("token", "")):
        return render_template("errors/closed.html"), 403
    session.clear()
    if services().settings.accounts != "none":
        session["may_set_up"] = True
        return redirect(url_for("accounts.set_up"), 303)
    session["entered"] = True
    session.permanent = True
    return redirect(url_for("course.index"), 303)
