"""The blueprint of the endpoints: who asks is known by the bearer token alone, and a body is a JSON object."""

from __future__ import annotations

import json
from typing import Any

from flask import abort, g, request
from flask.wrappers import Response
from flask_babel import gettext
from flask_openapi3.blueprint import APIBlueprint
from sqlalchemy.exc import OperationalError
from werkzeug.exceptions import HTTPException

from web.accounts.identity import LOCAL, of
from web.api import errors, tokens
from web.api.schemas import Refusal
from web.local import token_is_right
from web.services import services

blueprint = APIBlueprint(
    "api",
    __name__,
    url_prefix="/api/v1",
    abp_security=[{"token": []}],
    abp_responses={401: Refusal, 403: Refusal, 422: Refusal, 503: Refusal},
)
blueprint.register_error_handler(HTTPException, errors.of_http)
blueprint.register_error_handler(OperationalError, errors.of_database)
blueprint.register_error_handler(Exception, errors.of_anything)


@blueprint.before_request
def _known() -> Response | None:
    """Let in who has a valid token; `identity()` is theirs from here on."""
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    given = given.strip()
    if kind.lower() != "bearer" or not given:
        return _unknown(gettext("There is no token."), "Bearer")
    if services().settings.accounts == "none":
        if not token_is_right(given):
            return _unknown(gettext("The token is wrong."), 'Bearer error="invalid_token"')
        g.identity, g.token = LOCAL, 0
        return None
    with services().store.read() as session:
        found = tokens.find(session, given)
        who = of(found[1]) if found else None
    if found is None or who is None:
        return _unknown(
            gettext("The token is wrong, expired or revoked, or its account is closed."),
            'Bearer error="invalid_token"',
        )
    if who.must_change_password:
        return errors.refusal(
            403,
            gettext("The account has to choose a password first."),
            gettext("Sign in with a browser and choose one; the token then works again."),
        )
    if found[2]:
        with services().store.write() as session:
            tokens.used(session, found[0])
    g.identity, g.token = who, found[0]
    return None


def _unknown(error: str, challenge: str) -> Response:
    if services().settings.accounts == "none":
        advice = gettext(
            "Send Authorization: Bearer TOKEN with the token of the start address, which the terminal that runs the site shows."
        )
    else:
        advice = gettext(
            "Send Authorization: Bearer TOKEN with a token of yours: the site's page “Tokens”, in your account, makes them."
        )
    return errors.refusal(401, error, advice, headers={"WWW-Authenticate": challenge})


@blueprint.before_request
def _body_is_json() -> None:
    """The library takes what is no JSON for an empty body, and a string of JSON for JSON: here both are refused."""
    if request.method != "POST" or request.endpoint not in WITH_BODY:
        return
    if request.mimetype != "application/json":
        abort(415)
    if not isinstance(_read(request.get_data(cache=True)), dict):
        abort(
            errors.refusal(
                400,
                gettext("The body is no JSON object in UTF-8."),
                gettext("Send a JSON object, with the header Content-Type: application/json."),
            )
        )


WITH_BODY = {"api.submit"}


def _read(body: bytes) -> Any:
    """The JSON of a body; None if it is none."""
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):  # nested too deep is no JSON of ours either
        return None


@blueprint.after_request
def _keep_to_oneself(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response
