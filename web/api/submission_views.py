"""Submitting, following a submission, cancelling it. The same queue and the same questions to the store as on the pages."""

from __future__ import annotations

from flask import abort, jsonify, url_for
from flask.wrappers import Response
from flask_babel import gettext

from judge.core.wording import say
from judge.store import TooManyQueued, reading
from judge.store.reading import Details
from web.api.blueprint import blueprint
from web.api.errors import refusal
from web.api.schemas import (
    N_,
    NewSubmission,
    Page,
    Refusal,
    SubmissionDetails,
    SubmissionList,
    SubmissionPath,
    SubmissionSummary,
    Submitted,
)
from web.i18n import language
from web.limits import SUBMISSIONS, TOKEN_SUBMISSIONS
from web.services import package_or_404, services, user


@blueprint.post(
    "/submissions",
    summary=N_("Submit a program"),
    responses={201: Submitted, 400: Refusal, 404: Refusal, 413: Refusal, 415: Refusal, 429: Refusal},
)
@SUBMISSIONS
@TOKEN_SUBMISSIONS
def submit(body: NewSubmission) -> Response:
    package = package_or_404(body.problem)
    source = body.source.encode("utf-8")
    limit = package.limits.source_kb * 1024
    if len(source) > limit:
        params = {"size": len(source), "limit": limit}
        return refusal(
            413,
            say({"code": "source_too_large", "params": params}, language()),
            gettext("Make it shorter: limits.source_kb of the problem is what there may be."),
        )
    try:
        number = services().queue.submit(
            user=user(),
            problem=package.id,
            version=package.version,
            source=source,
            public_only=body.public_only,
        )
    except TooManyQueued as full:
        return refusal(
            429,
            gettext("%(n)s submissions of yours are waiting already.", n=full.most),
            gettext("Wait for a verdict, or cancel one, then send this again."),
            headers={"Retry-After": "5"},
        )
    services().ring()
    response = jsonify(id=number, status="queued")
    response.status_code = 201
    response.headers["Location"] = url_for(".submission", submission=number)
    return response


@blueprint.get("/submissions", summary=N_("Your submissions, newest first"), responses={200: SubmissionList})
def submissions(query: Page) -> Response:
    with services().store.read() as session:
        found = reading.history(session, user(), limit=query.limit + 1, before=query.before)
    page = found[: query.limit]
    following = page[-1].id if len(found) > len(page) else None
    mine = [SubmissionSummary.model_validate(one, from_attributes=True) for one in page]
    return jsonify(SubmissionList(submissions=mine, next=following).model_dump(mode="json"))


@blueprint.get(
    "/submissions/<int:submission>",
    summary=N_("One submission of yours: place in line, progress, verdict"),
    responses={200: SubmissionDetails, 404: Refusal},
)
def submission(path: SubmissionPath) -> Response:
    with services().store.read() as session:
        found = _mine(reading.find(session, user(), path.submission))
        # Also while it is judged again: what counts does not change by itself.
        is_final = found.status.is_final
        judged = [] if is_final else reading.progress(session, found.id, found.attempt, 0)
    details = SubmissionDetails(
        **SubmissionSummary.model_validate(found, from_attributes=True).model_dump(),
        final=is_final,
        ahead=found.ahead,
        cases=[case for _seq, case in judged],
        verdict=found.verdict,
    )
    return jsonify(details.model_dump(mode="json"))


@blueprint.post(
    "/submissions/<int:submission>/cancel",
    summary=N_("End a submission of yours before its verdict"),
    responses={200: Submitted, 404: Refusal, 409: Refusal},
)
def cancel(path: SubmissionPath) -> Response:
    with services().store.read() as session:
        found = _mine(reading.find(session, user(), path.submission))
    if not services().queue.cancel(user(), found.id):
        return refusal(
            409,
            gettext("Too late to cancel: it had already ended."),
            gettext("Ask for the submission: its verdict is there."),
        )
    return jsonify(id=found.id, status="cancelled")


def _mine(found: Details | None) -> Details:
    """Aborts with 404 for None: there is no such submission, or it is another's, which looks the same."""
    if found is None:
        abort(404)
    return found
