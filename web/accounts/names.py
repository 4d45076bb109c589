"""What a name may be made of. Names of people are shown to others, so nothing in them may be invisible, turn the
direction of a line, or grow over its neighbours; otherwise they are as people write them."""

from __future__ import annotations

import re
import unicodedata

from flask_babel import gettext

MOST_NAME = 80
LOGIN = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,63}")
JOINERS = "\u200c\u200d"  # Persian and Indic names are spelled with them
MOST_MARKS = 3  # combining marks on one letter: Vietnamese needs two


class NameRefused(ValueError):
    """The text says, in the reader's language, what is wrong and what to write. `field`: "login" or "name"."""

    def __init__(self, text: str, field: str = "name") -> None:
        super().__init__(text)
        self.field = field


def clean_login(text: str) -> str:
    """The name to sign in with, as it is stored: lower case. Raises NameRefused."""
    login = unicodedata.normalize("NFKC", text).strip().lower()
    if not LOGIN.fullmatch(login):
        raise NameRefused(
            gettext(
                "A sign-in name has 1 to 64 characters: letters a to z, digits and . _ @ + -, "
                "and begins with a letter or a digit."
            ),
            "login",
        )
    return login


def clean_name(text: str, most: int = MOST_NAME) -> str:
    """The name to show: NFC, one space between words. Raises NameRefused."""
    for c in text:
        if is_unseen(c) and not c.isspace():
            raise NameRefused(
                gettext(
                    "The name has an invisible character (U+%(code)s). Type it again instead of pasting it.",
                    code=f"{ord(c):04X}",
                )
            )
    name = unicodedata.normalize("NFC", " ".join(text.split()))
    if not name or not any(c.isalnum() for c in name):
        raise NameRefused(gettext("Write a name: at least one letter or digit."))
    if len(name) > most:
        raise NameRefused(
            gettext("The name has %(n)s characters; at most %(most)s fit.", n=len(name), most=most)
        )
    marks = 0
    for c in name:
        marks = marks + 1 if unicodedata.category(c).startswith("M") else 0
        if marks > MOST_MARKS:
            raise NameRefused(gettext("The name stacks more marks on one letter than any language does."))
    return name


def shortened(text: str, most: int = 64) -> str:
    """Somebody else's text inside a sentence of ours: nothing unseen in it, and not too long."""
    return "".join("�" if is_unseen(c) else c for c in text[:most]) + ("…" if len(text) > most else "")


def is_unseen(c: str) -> bool:
    """True for control and bidi characters, other invisible ones, and what is no character at all."""
    if c in JOINERS:
        return False
    return unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} or c == "\ufffd"
