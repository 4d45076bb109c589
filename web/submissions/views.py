"""Sending a submission, its page, its state for those who watch, and the list of mine."""

from __future__ import annotations

from typing import Any

from flask import (
    Blueprint,
    Response,
    abort,
    current_app,
    jsonify,
    redirect,
    render_template,
    request,
    url_for,
)
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse

from judge.core.wording import say
from judge.store import TooManyQueued, reading
from judge.store.reading import Details
from web.errors import wants_json
from web.forms import fields
from web.i18n import language
from web.limits import SUBMISSIONS
from web.problems.views import problem_page, shown_source
from web.services import package_or_404, services, user
from web.submissions.compare import compare
from web.submissions.stream import Streams, TooManyStreams, state, watch
from web.text import code_lines
from web.verdicts import Result, present

blueprint = Blueprint("submissions", __name__, template_folder="templates")


@blueprint.post("/problems/<int:problem>/submissions")
@SUBMISSIONS
def create(problem: int) -> AnyResponse | tuple[str | Response, int]:
    """Take a submission: field `source` (text) or `file`, and `public_only` for a run over the public
    cases. What is no program at all is taken too, and gets a verdict that says why; only what is too long
    is refused here."""
    package = package_or_404(problem)
    sent = fields()
    source = sent.get("file") or sent.get("source")
    if source is None:
        return _refuse(
            package, "", gettext("The form has no program in it: the field “source” is missing."), 400
        )
    limit = package.limits.source_kb * 1024
    if len(source) > limit:
        params = {"size": len(source), "limit": limit}
        return _refuse(
            package,
            shown_source(source),
            say({"code": "source_too_large", "params": params}, language()),
            413,
        )
    try:
        number = services().queue.submit(
            user=user(),
            problem=package.id,
            version=package.version,
            source=source,
            public_only=sent.get("public_only") == b"1",
        )
    except TooManyQueued as full:
        text = gettext(
            "%(n)s submissions of yours are waiting already. Wait for a verdict, or cancel one, then send this again.",
            n=full.most,
        )
        return _refuse(package, shown_source(source), text, 429)
    services().ring()
    if wants_json():
        return jsonify(id=number, fragment=url_for(".fragment", submission=number)), 201
    return redirect(url_for(".show", submission=number), 303)


def _refuse(package: Any, text: str, error: str, code: int) -> tuple[str | Response, int]:
    if wants_json():
        return jsonify(error=error), code
    return problem_page(package, editor_text=text or package.starter, error=error), code


@blueprint.get("/submissions")
def index() -> str:
    """All my submissions, newest first."""
    with services().store.read() as session:
        mine = reading.history(session, user(), limit=200)
    return render_template("submissions/index.html", history=mine, packages=services().packages)


@blueprint.get("/problems/<int:problem>/submissions")
def history(problem: int) -> str:
    """My submissions to one problem, as a part of its page."""
    package = package_or_404(problem)
    with services().store.read() as session:
        mine = reading.history(session, user(), package.id)
    return render_template("submissions/_history.html", history=mine, problem=package.id)


@blueprint.get("/problems/<int:problem>/compare")
def compare_two(problem: int) -> str:
    """What changed between two submissions of mine to one problem, `?old=ID&new=ID`; the earlier one is the old one."""
    package = package_or_404(problem)
    pair = sorted(_number(request.args.get(name)) for name in ("old", "new"))
    with services().store.read() as session:
        found = [reading.find(session, user(), number) for number in pair]
    if any(one is None or one.problem != problem for one in found):
        abort(404)
    old, new = [one for one in found if one is not None]
    return render_template(
        "submissions/compare.html",
        package=package,
        old=old,
        new=new,
        change=compare(shown_source(old.source), shown_source(new.source)),
        alike=old.source == new.source,
    )


def _number(text: str | None) -> int:
    """A submission's number from a query; aborts with 400 for anything else."""
    if text is None or not text.isdecimal() or len(text) > 18:
        abort(400)
    return int(text)


@blueprint.get("/submissions/<int:submission>")
def show(submission: int) -> str:
    """One submission: verdict and text."""
    return _page(submission)


@blueprint.post("/submissions/<int:submission>/cancel")
def cancel(submission: int) -> AnyResponse | tuple[str, int]:
    """End my submission before its verdict; for one that has ended meanwhile, its page with 409."""
    _found(submission)
    ended = services().queue.cancel(user(), submission)
    if wants_json():
        return jsonify(cancelled=ended)
    if not ended:
        return _page(submission, gettext("Too late to cancel: it had already ended.")), 409
    return redirect(url_for(".show", submission=submission), 303)


def _page(submission: int, notice: str = "") -> str:
    found, result = _found(submission)
    return render_template(
        "submissions/show.html",
        result=result,
        notice=notice,
        before=_before(found),
        package=services().packages.get(found.problem),
        source_lines=code_lines(shown_source(found.source)),
    )


@blueprint.get("/submissions/<int:submission>/fragment")
def fragment(submission: int) -> str:
    """The result alone, to be put into a page that is open."""
    _, result = _found(submission)
    return render_template("submissions/_result.html", result=result)


@blueprint.get("/submissions/<int:submission>/state")
def poll(submission: int) -> Response:
    """The state as JSON, for scripts whose stream cannot be opened. `after`: the last case that they know."""
    found, _ = _found(submission)
    return jsonify(state(services().store, found, _after(request.args.get("after", "")), language()))


@blueprint.get("/submissions/<int:submission>/events")
def events(submission: int) -> AnyResponse:
    """The same as a stream of events that ends with the verdict."""
    _found(submission)
    after = _after(request.headers.get("Last-Event-ID", ""))
    streams: Streams = current_app.extensions["streams"]
    live = watch(services().store, user(), submission, after, language())
    try:
        body = streams.open(user(), services().settings.streams, live)
    except TooManyStreams:
        abort(429)
    return Response(
        body, mimetype="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


def _before(found: Details) -> int | None:
    """My submission to the same problem before this one."""
    with services().store.read() as session:
        return reading.before(session, user(), found.problem, found.id)


def _found(submission: int) -> tuple[Details, Result]:
    """My submission of that number; aborts with 404 if there is none or it is another's."""
    if submission >= 2**63:
        abort(404)
    with services().store.read() as session:
        found = reading.find(session, user(), submission)
    if found is None:
        abort(404)
    return found, present(found, services().packages.get(found.problem))


def _after(text: str) -> tuple[int, int]:
    """(attempt, case) of an event's id; (0, 0) for anything else."""
    attempt, _, case = text.partition(".")
    if attempt.isdecimal() and case.isdecimal() and len(text) < 20:
        return int(attempt), int(case)
    return 0, 0
