"""Passwords: argon2id hashes, and what is asked of a new one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from flask_babel import gettext

SHORTEST, LONGEST = 10, 200
# Letters and digits that nobody mistakes for another, for passwords that are read out or copied from paper.
READABLE = "abcdefghjkmnpqrstuvwxyz23456789"
_hasher = PasswordHasher()
# For drawn passwords: 60 random bits need no slow hash, and a roster has hundreds of them.
_quick = PasswordHasher(time_cost=1, memory_cost=8 * 1024, parallelism=1)
# Checked when there is no such account: an answer must not come sooner for names that don't exist.
_NOBODY = _hasher.hash(secrets.token_urlsafe(16))


class PasswordRefused(ValueError):
    """The text says, in the reader's language, what is asked of a password."""


def hashed(password: str, *, login: str) -> str:
    """The hash to keep of a new password of `login`. Raises PasswordRefused."""
    if len(password) < SHORTEST:
        raise PasswordRefused(
            gettext("The password is too short: use at least %(n)s characters.", n=SHORTEST)
        )
    if len(password) > LONGEST:
        raise PasswordRefused(gettext("The password is too long: use at most %(n)s characters.", n=LONGEST))
    if len(set(password)) < 4 or (len(login) > 3 and login.lower() in password.lower()):
        raise PasswordRefused(
            gettext(
                "This password is easily guessed: don't use your sign-in name or the same character again and again."
            )
        )
    return _hasher.hash(password)


def matches(kept: str | None, password: str) -> bool:
    """True if that is the password. A refusal takes about as long whether there is an account, none (`kept` is None), or
    one that waits with a drawn password, whose own hash is quick."""
    given = password[: LONGEST + 1]
    if kept is not None and _is(kept, given):
        return True
    if kept is None or is_outdated(kept):
        _is(_NOBODY, given)
    return False


def _is(kept: str, given: str) -> bool:
    try:
        return _hasher.verify(kept, given)
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(kept: str) -> bool:
    """True if the hash was made with weaker settings than today's."""
    return _hasher.check_needs_rehash(kept)


def rehashed(password: str) -> str:
    """The hash, made anew, of a password that has just been found right."""
    return _hasher.hash(password)


@dataclass(frozen=True)
class Drawn:
    """A password for a first sign-in: the text is shown once, the hash is kept."""

    text: str
    hash: str = field(repr=False)


def draw() -> Drawn:
    """A password of 60 random bits, in groups that can be read out."""
    letters = "".join(secrets.choice(READABLE) for _ in range(12))
    text = "-".join(letters[i : i + 4] for i in range(0, 12, 4))
    return Drawn(text, _quick.hash(text))
