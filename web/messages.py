"""`python -m web.messages`: collects the sentences of code and templates and brings the Chinese catalogue
up to date, new ones empty. The tests fail while one is empty, out of date, or lacks a parameter."""

from __future__ import annotations

import io

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from web.i18n import TRANSLATIONS

WEB = TRANSLATIONS.parent
METHODS = [("**.py", "python"), ("**/templates/**.html", "jinja2.ext:babel_extract")]
OPTIONS = {"**/templates/**.html": {"trimmed": "true", "trim_blocks": "true", "lstrip_blocks": "true"}}
CHINESE = TRANSLATIONS / "zh" / "LC_MESSAGES" / "messages.po"


def extract() -> Catalog:
    """Every sentence in `web/`, with where it stands."""
    found = Catalog(charset="utf-8")
    for file, line, message, comments, context in extract_from_dir(WEB, METHODS, OPTIONS, comment_tags=()):
        found.add(message, None, [(f"web/{file}", line)], context=context, auto_comments=comments)
    return found


def read(path: io.BufferedIOBase, locale: str) -> Catalog:
    """A catalogue from an open .po."""
    return read_po(path, locale=locale)


def update() -> None:
    """Write the Chinese catalogue anew: kept translations, new sentences empty, unused ones gone."""
    with CHINESE.open("rb") as source:
        catalogue = read(source, "zh")
    catalogue.update(extract(), no_fuzzy_matching=True, update_creation_date=False)
    catalogue.obsolete.clear()
    catalogue.project, catalogue.version = "shouxie-mini-sglang", ""
    catalogue.msgid_bugs_address = catalogue.last_translator = catalogue.language_team = ""
    with CHINESE.open("wb") as target:
        write_po(target, catalogue, omit_header=False, sort_output=True, include_lineno=False, width=100)


if __name__ == "__main__":
    update()
