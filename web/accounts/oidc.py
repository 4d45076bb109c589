"""Signing in elsewhere: OpenID Connect with the school's own provider (`COURSE_OIDC_*`).

Whoever comes back is known by issuer and subject, which never change. The first time, the provider's name for them
(`COURSE_OIDC_LOGIN_CLAIM`) finds the account that a roster made for them and nobody has used yet; any other account of
that name is somebody's, and stays theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from authlib.integrations.base_client import OAuthError
from authlib.integrations.flask_client import OAuth
from flask import Flask, abort, current_app, flash, redirect, request, session, url_for
from flask_babel import gettext
from joserfc.errors import JoseError
from requests import RequestException
from sqlalchemy import select, update
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from judge.store import now
from web.accounts import people
from web.accounts.identity import sign_in
from web.accounts.names import NameRefused, clean_login, clean_name, shortened
from web.accounts.people import AccountRefused
from web.accounts.tables import Event, Role, User
from web.services import services
from web.settings import Settings

log = structlog.get_logger("web.oidc")
NAME = "school"
ANSWER_S = 10
LONGEST_SUBJECT = 255  # what `User.oidc_subject` has room for


def init_app(app: Flask) -> None:
    settings: Settings = app.extensions["course"].settings
    if not settings.oidc_issuer:
        return
    oauth = OAuth(app)
    oauth.register(
        NAME,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret.get_secret_value(),
        server_metadata_url=f"{settings.oidc_issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={"scope": "openid profile", "code_challenge_method": "S256", "timeout": ANSWER_S},
    )
    app.extensions["oidc"] = oauth


def begin(back: str) -> Response:
    """Send the browser to the provider; `back`: the page of ours to go on to afterwards."""
    session["after_oidc"] = back
    try:
        answer: Response = _client().authorize_redirect(_own_address())
    except (RequestException, OAuthError, ValueError) as error:
        return _failed("provider", error)
    return answer


def come_back() -> Response:
    """The browser is back: check what it brings, find the account, sign in."""
    try:
        token = _client().authorize_access_token()
    except (RequestException, OAuthError, JoseError, ValueError) as error:
        return _failed("answer", error)
    claims: Mapping[str, Any] = token.get("userinfo") or {}
    sub = str(claims.get("sub") or "")
    subject = f"{services().settings.oidc_issuer}|{sub}"
    if not sub or len(subject) > LONGEST_SUBJECT:  # cut off, it could be another's
        return _failed("subject", None)
    back = str(session.get("after_oidc") or url_for("course.index"))
    try:
        with services().store.write() as db:
            user = account_of(db, subject, claims, services().settings)
            db.execute(update(User).where(User.id == user.id).values(last_seen_at=now()))
    except AccountRefused as refused:
        flash(str(refused), "error")
        return redirect(url_for("accounts.enter"), 303)
    sign_in(user, remember=False)
    return redirect(back, 303)


def account_of(db: Session, subject: str, claims: Mapping[str, Any], settings: Settings) -> User:
    """The account of that subject; the first time, the one that waits for them, or a new one where the site lets people
    register. Raises AccountRefused, with what to do."""
    user = db.scalars(select(User).where(User.oidc_subject == subject)).one_or_none()
    if user is not None:
        if user.disabled_at is not None:
            raise AccountRefused(gettext("This account is closed. Ask your teacher."))
        return user
    login = _login(claims, settings)
    user = people.by_login(db, login)
    if user is None:
        if settings.registration != "open":
            raise AccountRefused(
                gettext(
                    "You are not on this site's list. Ask your teacher to add you as “%(login)s”.",
                    login=login,
                )
            )
        user = people.create(db, login=login, name=_name(claims, login))
        people.note(db, user.key, Event.REGISTERED, f"user {user.id}", role=user.role)
    elif (
        user.last_seen_at is not None
        or (user.password_hash is not None and not user.must_change_password)  # somebody has chosen it
        or user.role != Role.LEARNER
        or user.disabled_at is not None
        or user.oidc_subject
    ):
        raise AccountRefused(
            gettext(
                "The sign-in name “%(login)s” belongs to another account here. Ask the administrator.",
                login=login,
            )
        )
    user.oidc_subject, user.must_change_password, user.password_hash = subject, False, None
    people.note(db, user.key, Event.OIDC_LINKED, f"user {user.id}")
    db.flush()
    return user


def _login(claims: Mapping[str, Any], settings: Settings) -> str:
    """What the provider calls them, as a sign-in name. Raises AccountRefused if it cannot be one."""
    given = str(claims.get(settings.oidc_login_claim) or "")
    try:
        return clean_login(given)
    except NameRefused as refused:
        log.warning("oidc_login_refused", claim=settings.oidc_login_claim, given=given[:64])
        text = (
            gettext(
                "Your school calls you “%(given)s”, which cannot be a sign-in name here. %(why)s Ask the administrator.",
                given=shortened(given),
                why=refused,
            )
            if given
            else gettext(
                "Your school does not say by which name you sign in (%(claim)s). Ask the administrator.",
                claim=settings.oidc_login_claim,
            )
        )
        raise AccountRefused(text) from None


def _name(claims: Mapping[str, Any], login: str) -> str:
    """The name to show: the provider's, or the sign-in name where that is none of ours. They can change it themselves."""
    try:
        return clean_name(str(claims.get("name") or ""))
    except NameRefused:
        return login


def _own_address() -> str:
    base = services().settings.site_url or request.host_url.rstrip("/")
    return base + url_for("accounts.oidc_back")


def _client() -> Any:
    oauth = current_app.extensions.get("oidc")
    if oauth is None:
        abort(404)
    return oauth.create_client(NAME)


def _failed(at: str, error: Exception | None) -> Response:
    """Back to the sign-in page, which says that it did not work; the log says why."""
    log.warning(
        "oidc_failed", at=at, error=type(error).__name__ if error else "", reason=str(error or "")[:200]
    )
    flash(
        gettext("Signing in at your school did not work. Try again; if it stays so, tell the administrator."),
        "error",
    )
    return redirect(url_for("accounts.enter"), 303)
