"""What every request is asked before a view sees it, in either mode:

- its Host is ours: a loopback name, or that of `COURSE_SITE_URL`. A stranger's name that points at this machine must
  not make their page ours;
- an Origin, if one is sent, is our own; what changes something carries one, and a CSRF token (Flask-WTF);
- the API (`web.api`) knows no cookies: there only the Host is asked about here, and the token by its blueprint;
- whoever asks has entered (local mode: `local`) or signed in (`accounts`), unless the page is for strangers.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import Flask, abort, g, jsonify, redirect, render_template, request, session, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from web.accounts.identity import LOCAL, identity
from web.addresses import own_page
from web.api.errors import PREFIX as API
from web.errors import error_page, wants_json
from web.forms import read_form
from web.services import services

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Pages for those who have not signed in.
OPEN_ENDPOINTS = {
    *("built", "i18n.choose", "local.enter"),
    *("accounts.enter", "accounts.try_to_enter", "accounts.set_up", "accounts.register", "joining.show"),
    *("accounts.oidc", "accounts.oidc_back"),
    "api_page.show",
}
# Asked by monitoring, by whatever name it knows this machine; they tell nothing about anybody.
FOR_MACHINES = {"ops.healthz", "ops.metrics"}
# What someone may open who has to choose a password first.
BEFORE_PASSWORD = {"accounts.change_password", "accounts.leave", "built", "i18n.choose"}


def init_app(app: Flask) -> None:
    app.before_request(_guard)


def _guard() -> tuple[Response | str, int] | Response | None:
    if request.endpoint in FOR_MACHINES:
        return None
    origin = _own_origin()
    if request.path.startswith(API):
        g.identity = None  # whatever cookies came along
        return None
    given = request.headers.get("Origin")
    if given is not None and given != origin:
        abort(403, "origin")
    if request.method not in SAFE_METHODS:
        if given is None:
            abort(403, "origin")
        read_form()
    if services().settings.accounts == "none":
        if session.get("entered"):
            g.identity = LOCAL
            return None
        if request.endpoint in {"built", "local.enter"}:
            return None
        return _closed()
    who = identity()
    if who is None:
        return None if request.endpoint in OPEN_ENDPOINTS else _to_sign_in()
    if who.must_change_password and request.endpoint not in BEFORE_PASSWORD:
        return redirect(url_for("accounts.change_password"), 303)
    return None


def _own_origin() -> str:
    """The origin of our own pages as this browser knows it. Aborts with 403 for a Host that is not ours."""
    site = services().settings.site_url
    if site and request.host == urlsplit(site).netloc:
        return site
    if _hostname(f"//{request.host}") in LOOPBACK:
        return request.host_url.rstrip("/")
    abort(403, "host")


def _closed() -> tuple[Response | str, int]:
    """Local mode, for a browser that has not entered or whose cookie is gone."""
    if wants_json():
        return jsonify(
            error=gettext(
                "This browser has to be let in again. Your text is kept: open the start address that the terminal shows, "
                "then send it again."
            )
        ), 403
    return render_template("errors/closed.html"), 403


def _to_sign_in() -> tuple[Response | str, int] | Response:
    """For a stranger, and for somebody whose session has ended: whoever sent something is told that it was not taken, with
    a way back to the page that it was sent from."""
    if wants_json():
        link = {"href": sign_in_address(_page_before()), "text": gettext("Sign in")}
        told = gettext("You are signed out. Your text is kept: sign in, then send it again.")
        return jsonify(error=told, link=link), 401
    if request.method in SAFE_METHODS:
        return redirect(sign_in_address(request.full_path.rstrip("?")), 303)
    return error_page(
        401,
        gettext("You are signed out"),
        gettext(
            "What you sent was not taken. Sign in, and you come back to the page where you were; then send it again."
        ),
        sign_in=sign_in_address(_page_before()),
    )


def sign_in_address(back: str) -> str:
    """The page to sign in on; `back`: the page of ours to go on to."""
    return url_for("accounts.enter", next=back or None)


def _page_before() -> str:
    """The page of ours that a request was sent from; "" where it does not say."""
    page = urlsplit(request.referrer or "")
    if f"{page.scheme}://{page.netloc}" != _own_origin():
        return ""
    return own_page(page.path + (f"?{page.query}" if page.query else ""), "")


def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # such as an unclosed bracket
        return None
