"""Two languages. Sentences are written in English in code and templates; `translations/zh` has the Chinese
of each. What the reader chose is kept in a cookie, before that their browser's wish counts.

Catalogues are compiled when an app is made, not committed: a .po that changed is in effect at the next start.
"""

from __future__ import annotations

import os
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from flask import Blueprint, Flask, abort, redirect, request
from flask_babel import Babel, get_locale
from werkzeug.wrappers import Response

from web.addresses import own_page

LANGUAGES = {"zh": "中文", "en": "English"}
DEFAULT = "zh"
COOKIE = "lang"
TRANSLATIONS = Path(__file__).parent / "translations"
YEAR_S = 365 * 24 * 3600

blueprint = Blueprint("i18n", __name__)


def init_app(app: Flask) -> None:
    compile_catalogues()
    app.config["BABEL_TRANSLATION_DIRECTORIES"] = str(TRANSLATIONS)
    app.config["BABEL_DEFAULT_LOCALE"] = "en"  # the language of the sentences in the code
    Babel(app, locale_selector=_choose)
    app.register_blueprint(blueprint)
    app.jinja_env.globals.update(language=language, languages=LANGUAGES)


def language() -> str:
    """The language of this request: "zh" or "en"."""
    return str(get_locale())


def _choose() -> str:
    wanted = request.cookies.get(COOKIE)
    if wanted in LANGUAGES:
        return wanted
    return request.accept_languages.best_match(list(LANGUAGES)) or DEFAULT


@blueprint.post("/language")
def choose() -> Response:
    """Keep the chosen language and go back to where the reader was."""
    wanted, back = request.form.get("lang", ""), request.form.get("next", "/")
    if wanted not in LANGUAGES:
        abort(400)
    response = redirect(own_page(back, "/"), 303)
    response.set_cookie(COOKIE, wanted, max_age=YEAR_S, samesite="Lax", httponly=True)
    return response


def compile_catalogues() -> None:
    """Write the .mo of every .po that is newer than it; several processes may do so at once."""
    for po in TRANSLATIONS.glob("*/LC_MESSAGES/*.po"):
        mo = po.with_suffix(".mo")
        if mo.exists() and mo.stat().st_mtime_ns >= po.stat().st_mtime_ns:
            continue
        with po.open("rb") as source:
            catalogue = read_po(source, locale=po.parts[-3])
        draft = mo.with_suffix(f".{os.getpid()}")
        with draft.open("wb") as target:
            write_mo(target, catalogue)
        draft.replace(mo)
