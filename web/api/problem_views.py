"""Who I am, and the problems."""

from __future__ import annotations

from flask import abort, jsonify
from flask.wrappers import Response

from judge.packages import Bilingual, Package
from judge.store import reading
from web.accounts.identity import identity
from web.api.blueprint import blueprint
from web.api.schemas import N_, Case, Me, ProblemDetails, ProblemList, ProblemPath, ProblemSummary, Refusal
from web.services import package_or_404, services, user


@blueprint.get("/me", summary=N_("Whose token this is"), responses={200: Me})
def me() -> Response:
    who = identity()
    if who is None:
        abort(401)
    return jsonify(Me(name=who.name, login=who.login, role=who.role.value).model_dump(mode="json"))


@blueprint.get("/problems", summary=N_("All problems, and how far you are"), responses={200: ProblemList})
def problems() -> Response:
    solved = _standing()
    found = [ProblemSummary(**_summary(p, solved)) for p in services().packages.values()]
    return jsonify(ProblemList(problems=found).model_dump(mode="json"))


@blueprint.get(
    "/problems/<int:problem>",
    summary=N_("One problem: statement, starter, limits, public cases"),
    responses={200: ProblemDetails, 404: Refusal},
)
def problem(path: ProblemPath) -> Response:
    package = package_or_404(path.problem)
    details = ProblemDetails(
        **_summary(package, _standing()),
        tags=package.tags,
        kind=package.kind,
        entry=package.entry,
        signature=package.info.signature,
        outputs=package.info.outputs,
        statement=Bilingual(zh=package.statement("zh"), en=package.statement("en")),
        starter=package.starter,
        limits=package.limits,
        cases=[
            Case(name=c.name, inputs=dict(c.inputs), expected=dict(c.expected), note=dict(c.note or {}))
            for c in package.public
        ],
    )
    return jsonify(details.model_dump(mode="json"))


def _standing() -> dict[int, bool]:
    with services().store.read() as session:
        return reading.standing(session, user())


def _summary(package: Package, solved: dict[int, bool]) -> dict[str, object]:
    return {
        "id": package.id,
        "title": package.title,
        "chapter": package.chapter,
        "difficulty": package.difficulty,
        "version": package.version,
        "runs": package.info.runs,
        "standing": {True: "solved", False: "tried", None: "none"}[solved.get(package.id)],
    }
