"""What a password is hashed with for people: the other tests of the site use less work (tests/web/conftest.py)."""

from __future__ import annotations

from argon2 import PasswordHasher, extract_parameters
from argon2.profiles import RFC_9106_LOW_MEMORY

from tests.web.conftest import QUICK_HASHER
from web.accounts import passwords

FOR_PEOPLE = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
PASSWORD = "correct horse battery"


def test_a_chosen_password_is_hashed_as_the_standard_asks(monkeypatch):
    monkeypatch.undo()  # back to what people have
    for kept in (passwords.hashed(PASSWORD, login="ada"), passwords.rehashed(PASSWORD), passwords._NOBODY):
        assert extract_parameters(kept) == RFC_9106_LOW_MEMORY
    assert passwords.matches(FOR_PEOPLE.hash(PASSWORD), PASSWORD)
    assert not passwords.is_outdated(FOR_PEOPLE.hash(PASSWORD))


def test_hashes_with_less_work_are_outdated(monkeypatch):
    monkeypatch.undo()
    for kept in (QUICK_HASHER.hash(PASSWORD), passwords.draw().hash):
        assert passwords.is_outdated(kept)
