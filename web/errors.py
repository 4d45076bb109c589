"""Pages for what goes wrong, in the site's look; the same as JSON for our own scripts."""

from __future__ import annotations

import structlog
from flask import Flask, jsonify, render_template, request
from flask_babel import gettext
from flask_limiter import RateLimitExceeded
from flask_wtf.csrf import CSRFError
from sqlalchemy.exc import OperationalError
from werkzeug.exceptions import HTTPException, InternalServerError
from werkzeug.wrappers import Response

from web.limits import wait_s
from web.services import services

log = structlog.get_logger("web")


class Told(HTTPException):
    """A request that cannot be, with a title and an advice of its own, both in the reader's language."""

    def __init__(self, code: int, title: str, advice: str) -> None:
        super().__init__(title)
        self.code, self.title, self.advice = code, title, advice


def init_app(app: Flask) -> None:
    app.register_error_handler(CSRFError, _csrf)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(OperationalError, _database)
    app.register_error_handler(Exception, _unexpected)


def wants_json() -> bool:
    """True for requests of our own scripts."""
    return request.accept_mimetypes.best == "application/json"


def _texts(code: int) -> tuple[str, str]:
    """Title and advice."""
    texts = {
        400: (
            gettext("This request cannot be understood"),
            gettext(
                "A field is missing or has a value that does not exist. "
                "Go back, reload the page and try again."
            ),
        ),
        401: (gettext("Not signed in"), gettext("Sign in, then try again. What you wrote is kept.")),
        403: (
            gettext("Not allowed"),
            gettext(
                "The request does not come from a page of this site. "
                "Open the site by its start address, which the terminal that runs it shows."
            )
            if services().settings.accounts == "none"
            else gettext(
                "Either your account may not do this, or the request does not come from a page of this site. "
                "Open the page anew from the site itself; ask your teacher if it should be allowed."
            ),
        ),
        404: (
            gettext("There is no such page"),
            gettext("The address is mistyped, or what it named does not exist (any more)."),
        ),
        405: (
            gettext("Not allowed"),
            gettext("This address cannot be used in this way. Start from the course page."),
        ),
        409: (
            gettext("Not now"),
            gettext("This was changed or archived meanwhile. Go back and reload the page."),
        ),
        413: (
            gettext("Too large"),
            gettext("What was sent is larger than this site accepts. A submission has a few kilobytes."),
        ),
        429: (
            gettext("Too many requests"),
            gettext("This has been tried too often in a short time. Wait a little, then try again."),
        ),
        500: (
            gettext("Something broke on our side"),
            gettext("The fault is ours and has been logged. What you submitted before is kept. Try again."),
        ),
    }
    return texts.get(code, (gettext("This did not work"), gettext("Go back, reload the page and try again.")))


def _http(error: HTTPException) -> tuple[str | Response, int] | Response:
    if error.code is not None and error.code < 400:
        return error.get_response()  # such as the redirect to the same address with a slash
    if isinstance(error, Told):
        return error_page(error.code or 500, error.title, error.advice)
    title, advice = _texts(error.code or 500)
    if isinstance(error, RateLimitExceeded):
        limit = error.limit.limit
        advice += " " + gettext(
            "At most %(n)s in %(seconds)s seconds; it goes on in %(wait)s seconds.",
            n=limit.amount,
            seconds=limit.get_expiry(),
            wait=wait_s(),
        )
    return error_page(error.code or 500, title, advice)


def _csrf(error: CSRFError) -> tuple[str | Response, int]:
    advice = gettext(
        "The page was open for too long, or in another session. Reload it and send the form again."
    )
    return error_page(400, gettext("This form is no longer valid"), advice)


def _database(error: OperationalError) -> tuple[str | Response, int]:
    """A database that cannot write: what was sent is not kept, and the page says so."""
    log.error("database_failed", path=request.path, method=request.method, reason=str(error.orig))
    if "disk is full" in str(error.orig):
        return error_page(
            507,
            gettext("The disk is full"),
            gettext(
                "The site has no room to keep what you sent; it was not taken. Your text is still in the editor: copy it "
                "to be safe, tell the teacher, and send it again later."
            ),
        )
    return error_page(
        503,
        gettext("The database is busy"),
        gettext(
            "It did not answer in time, and what you sent was not kept. Go back and send it again in a moment."
        ),
    )


def _unexpected(error: Exception) -> tuple[str | Response, int]:
    log.error("request_failed", path=request.path, method=request.method, exc_info=error)
    return error_page(500, *_texts(InternalServerError.code))


def error_page(code: int, title: str, advice: str, sign_in: str = "") -> tuple[str | Response, int]:
    """What went wrong and what to do, as a page or for a script of ours; `sign_in`: where to sign in, if that would help."""
    if wants_json():
        return jsonify(error=f"{title}. {advice}"), code
    return render_template("errors/error.html", code=code, title=title, advice=advice, sign_in=sign_in), code
