"""Local mode: one user on this machine, no login. A page in the same browser must still not be able to
submit, and a name that points at 127.0.0.1 must not make a stranger's page ours. So:

- the Host is a loopback name, always; an Origin, if one is sent, is our own;
- what changes something carries our Origin, a CSRF token and the session;
- the session begins with the start address, which holds a token that only the terminal shows.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from flask import Blueprint, Flask, abort, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from web.forms import read_form
from web.services import services

blueprint = Blueprint("local", __name__)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
OPEN_ENDPOINTS = frozenset({"built", "local.enter"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def init_app(app: Flask) -> None:
    app.register_blueprint(blueprint)
    app.before_request(_guard)


def _guard() -> tuple[str, int] | None:
    if _hostname(f"//{request.host}") not in LOOPBACK:
        abort(403, "host")
    origin = request.headers.get("Origin")
    if origin is not None and origin != request.host_url.rstrip("/"):
        abort(403, "origin")
    if request.method not in SAFE_METHODS:
        if origin is None:
            abort(403, "origin")
        read_form()
    if request.endpoint not in OPEN_ENDPOINTS and not session.get("entered"):
        return render_template("errors/closed.html"), 403
    return None


def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # such as an unclosed bracket
        return None


@blueprint.get("/enter")
def enter() -> Response | tuple[str, int]:
    """The start address: a right token opens a session, and leaves the address bar."""
    token = services().settings.token.get_secret_value()
    given = request.args.get("token", "")
    if not token or not hmac.compare_digest(given.encode(), token.encode()):
        return render_template("errors/closed.html"), 403
    session.clear()
    session["entered"] = True
    session.permanent = True
    return redirect(url_for("course.index"), 303)
