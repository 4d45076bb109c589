"""Who is asking. Views get an `Identity`, whatever the way of signing in; Flask-Login keeps who it is in the session."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Flask, g, session
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user

from web.accounts.tables import Role, User, key_of

LOCAL_KEY = "local"
CONSOLE_KEY = "console"  # whoever works on the machine itself (`web.manage`)


@dataclass(frozen=True)
class Identity(UserMixin):  # type: ignore[misc]  # it ships no types
    """Someone who has signed in.

    Invariants: `key` is what submissions, drafts and limits are kept under; `number` is the account's id, None in local
    mode, which has no accounts; `version` is the session version that this session began with.
    """

    key: str
    name: str
    role: Role
    number: int | None = None
    login: str = ""
    version: int = 0
    must_change_password: bool = False
    time_zone: str = ""

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN

    @property
    def is_teacher(self) -> bool:
        """True if they may make classes."""
        return self.role in (Role.TEACHER, Role.ADMIN)

    def get_id(self) -> str:
        return f"{self.number}.{self.version}"


# Local mode: whoever started the site is its only user, and may do everything.
LOCAL = Identity(key=LOCAL_KEY, name="local", role=Role.ADMIN)


def init_app(app: Flask) -> None:
    manager = LoginManager(app)
    manager.user_loader(_load)
    app.jinja_env.globals["identity"] = identity


def of(user: User) -> Identity:
    """The identity of an account."""
    return Identity(
        key=user.key,
        name=user.name,
        role=Role(user.role),
        number=user.id,
        login=user.login,
        version=user.session_version,
        must_change_password=user.must_change_password,
        time_zone=user.time_zone,
    )


def identity() -> Identity | None:
    """Who is asking; None for a stranger."""
    found: Identity | None
    if "identity" in g:
        found = g.identity
        return found
    return current_user._get_current_object() if current_user.is_authenticated else None


def sign_in(user: User, *, remember: bool) -> None:
    """Begin a session of its own: nothing that a stranger put into this browser's session is carried over."""
    session.clear()
    session.permanent = remember
    login_user(of(user))


def sign_out() -> None:
    logout_user()
    session.clear()


def _load(text: str) -> Identity | None:
    """The account that a session names, unless all its sessions were ended since."""
    from web.services import services

    number, _, version = text.partition(".")
    if not (number.isdecimal() and version.isdecimal()) or len(text) > 24:
        return None
    with services().store.read() as db:
        user = db.get(User, int(number))
        if user is None or user.session_version != int(version) or user.disabled_at is not None:
            return None
        return of(user)


__all__ = ["CONSOLE_KEY", "LOCAL", "LOCAL_KEY", "Identity", "identity", "key_of", "of", "sign_in", "sign_out"]
