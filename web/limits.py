"""How often things may be done, by whom. Counted in memory of the one web process (`COURSE_LIMITS_URL` names a store
that several share); each answer says in its headers what is left (`X-RateLimit-Remaining`)."""

from __future__ import annotations

import time
from math import ceil

from flask import Flask, g, request
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

from web.accounts.identity import identity
from web.services import services


def asking() -> str:
    """Who a limit counts for: the account, or the address of a stranger."""
    who = identity()
    return who.key if who is not None else f"address {get_remote_address()}"


def address() -> str:
    return f"address {get_remote_address()}"


def signing_in() -> str:
    """The name that somebody tries to sign in with, wherever from."""
    return f"login {request.form.get('login', '').strip().lower()[:64]}"


def signing_in_from_here() -> str:
    """The name that somebody tries to sign in with, from their address."""
    return f"{address()} {signing_in()}"


def alone() -> bool:
    """Whether the site has one user, from whom nobody else has to be kept free."""
    return services().settings.accounts == "none"


limiter = Limiter(key_func=asking, headers_enabled=True, strategy="moving-window")

# A whole class signs in at once from one address; nobody mistypes a password more often than that.
SIGN_INS = limiter.limit("300 per minute", key_func=address)
# Guessing from one place ends soon. From everywhere together it ends later: ten tries of somebody far away must not lock
# the owner out before a deadline.
WRONG_PASSWORDS = limiter.limit(
    "10 per 15 minutes",
    key_func=signing_in_from_here,
    deduct_when=lambda response: response.status_code == 401,
)
WRONG_PASSWORDS_ANYWHERE = limiter.limit(
    "100 per 15 minutes", key_func=signing_in, deduct_when=lambda response: response.status_code == 401
)
# Of one's own account: counted for the account, whatever else the form says.
OWN_PASSWORD = limiter.shared_limit(
    "10 per 15 minutes", scope="own password", deduct_when=lambda response: response.status_code == 401
)
REGISTRATIONS = limiter.limit(
    "60 per hour", key_func=address, deduct_when=lambda response: response.status_code == 303
)
JOINS = limiter.limit("300 per minute", key_func=address)
# From pages and the API together; of one token fewer, so that a program gone wild leaves room for its owner. It keeps the
# judge free for the others, so whoever has a site of their own is not counted.
SUBMISSIONS = limiter.shared_limit("60 per minute", scope="submissions", exempt_when=alone)
TOKEN_SUBMISSIONS = limiter.limit("40 per minute", key_func=lambda: f"token {g.token}")


def init_app(app: Flask) -> None:
    app.config["RATELIMIT_STORAGE_URI"] = app.extensions["course"].settings.limits_url
    limiter.init_app(app)


def remaining() -> int | None:
    """How often what was just tried may still be tried; None where nothing is counted."""
    return min((limit.remaining for limit in limiter.current_limits), default=None)


def wait_s() -> int:
    """In how many seconds what was just refused may be tried again; 0 if nothing was."""
    ends = [limit.reset_at for limit in limiter.current_limits if limit.breached]
    return max(1, ceil(max(ends) - time.time())) if ends else 0
