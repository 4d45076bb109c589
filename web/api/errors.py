"""What the API says when something is wrong: always a `Refusal` (`schemas`), whatever the status."""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from flask import Flask, jsonify, request
from flask.wrappers import Response
from flask_babel import gettext
from flask_limiter import RateLimitExceeded
from pydantic import ValidationError
from sqlalchemy.exc import OperationalError
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from web.limits import wait_s

log = structlog.get_logger("web")
PREFIX = "/api/v1/"


def init_app(app: Flask) -> None:
    app.before_request(_no_such_place)


def _no_such_place() -> Response | None:
    """An address or method that does not exist belongs to no blueprint: its handlers never see it."""
    error = request.routing_exception
    return of_http(error) if isinstance(error, HTTPException) and request.path.startswith(PREFIX) else None


def refusal(
    code: int,
    error: str,
    advice: str,
    fields: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer. `error` says what is wrong, `advice` what to do, `fields` where in what was sent."""
    response = jsonify(error=error, advice=advice, fields=fields or [])
    response.status_code = code
    response.headers["Cache-Control"] = "no-store"
    response.headers.update(headers or {})
    return response


def _texts(code: int) -> tuple[str, str]:
    reading = gettext("Read %(page)s: it says what there is and how to ask for it.", page="/api/v1")
    texts = {
        400: (gettext("This request cannot be understood."), reading),
        403: (
            gettext("This is not allowed."),
            gettext("Use the site's own address, the one that people open in a browser."),
        ),
        404: (gettext("There is no such thing, or it is not yours."), reading),
        405: (gettext("This address cannot be used in this way."), reading),
        413: (
            gettext("What was sent is larger than this site accepts."),
            gettext("A submission has a few kilobytes; the problem says how many."),
        ),
        415: (
            gettext("The body is not JSON."),
            gettext("Send a JSON object, with the header Content-Type: application/json."),
        ),
        500: (
            gettext("Something broke on our side."),
            gettext("The fault is ours and has been logged. What you submitted before is kept. Try again."),
        ),
    }
    return texts.get(code, (gettext("This did not work."), reading))


def of_http(error: HTTPException) -> Response:
    if isinstance(error.response, Response):  # made by `refusal`
        return error.response
    if isinstance(error, RateLimitExceeded):
        limit, wait = error.limit.limit, max(1, wait_s())
        return refusal(
            429,
            gettext("This has been tried too often in a short time."),
            gettext(
                "At most %(n)s in %(seconds)s seconds; it goes on in %(wait)s seconds.",
                n=limit.amount,
                seconds=limit.get_expiry(),
                wait=wait,
            ),
            headers={"Retry-After": str(wait)},
        )
    headers = {}
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return refusal(error.code or 500, *_texts(error.code or 500), headers=headers)


def of_database(error: OperationalError) -> Response:
    """A database that cannot be written or read now: nothing of this request was kept."""
    log.error("database_failed", path=request.path, method=request.method, reason=str(error.orig))
    if "disk is full" in str(error.orig):
        return refusal(
            507,
            gettext("The disk of the site is full: what you sent was not taken."),
            gettext("Tell the teacher, and send it again later."),
        )
    return refusal(
        503,
        gettext("The database did not answer in time: what you sent was not kept."),
        gettext("Send it again in a moment."),
        headers={"Retry-After": "5"},
    )


def of_anything(error: Exception) -> Response:
    log.error("request_failed", path=request.path, method=request.method, exc_info=error)
    return refusal(500, *_texts(500))


def of_validation(error: ValidationError) -> Response:
    """422: each field that does not fit, by its path."""
    fields = [
        {"path": ".".join(map(str, e["loc"])), "message": _said(e["type"], e.get("ctx") or {})}
        for e in error.errors(include_url=False, include_input=False)
    ]
    return refusal(
        422,
        gettext("What was sent does not fit."),
        gettext("Change what “fields” names; %(page)s has the schema.", page="/api/v1"),
        fields[:20],
    )


def _said(kind: str, bounds: Mapping[str, object]) -> str:
    """pydantic's kinds of error in the reader's language."""
    texts = {
        "missing": gettext("is missing"),
        "extra_forbidden": gettext("is not known here"),
        "int_type": gettext("must be a whole number"),
        "int_parsing": gettext("must be a whole number"),
        "int_from_float": gettext("must be a whole number"),
        "string_type": gettext("must be text"),
        "string_unicode": gettext("holds half of a surrogate pair, which is no text"),
        "bool_type": gettext("must be true or false"),
        "greater_than_equal": gettext("must be at least %(n)s", n=bounds.get("ge")),
        "less_than_equal": gettext("must be at most %(n)s", n=bounds.get("le")),
    }
    said: str = texts.get(kind) or gettext("does not fit the schema (%(kind)s)", kind=kind)
    return said
