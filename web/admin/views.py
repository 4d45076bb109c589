"""How the site is; the packages; the audit log."""

from __future__ import annotations

from flask import abort, render_template, request
from flask_babel import gettext
from sqlalchemy import select

from judge import verified
from judge.packages import survey
from web.accounts.tables import AuditEntry
from web.admin.audit import target_text, told
from web.admin.blueprint import blueprint
from web.admin.health import look
from web.services import services

PAGE = 100


@blueprint.get("")
def index() -> str:
    """The state of the site, with what somebody should look at on top."""
    health = look(services())
    return render_template("admin/index.html", health=health, warnings=[_warning(w) for w in health.warnings])


def _warning(code: str) -> str:
    texts: dict[str, str] = {
        "no_worker": gettext("No worker is there: nothing is judged. Look into the log of the worker."),
        "slow": gettext("Somebody has been waiting for more than a minute."),
        "disk": gettext("Little disk space is left: when it is used up, nothing can be submitted."),
        "system_errors": gettext(
            "Within the last hour the judge itself has failed. The worker's log says how."
        ),
    }
    return texts[code]


@blueprint.get("/packages")
def packages() -> str:
    """The problem packages as they are on disk now: loaded ones and refused ones with file and line; and what `verify` found
    of them last."""
    found = survey()
    served = services().packages
    rows = [
        (p, served.get(p.id) is not None and served[p.id].version == p.version)
        for p in sorted(found.packages.values(), key=lambda p: p.id)
    ]
    proofs, damaged = _proofs()
    return render_template(
        "admin/packages.html", rows=rows, refused=found.refused, proofs=proofs, damaged=damaged
    )


def _proofs() -> tuple[dict[int, verified.Found], str]:
    """What `verify` found of each problem, and what is wrong with the file where that cannot be read."""
    try:
        return verified.read(services().settings.data_dir), ""
    except (OSError, ValueError) as error:
        return {}, str(error)


@blueprint.get("/audit")
def audit() -> str:
    """Who did what, the latest first; `?before=` goes back from an entry, `?target=` keeps to one object."""
    before, target = request.args.get("before", ""), request.args.get("target", "")
    if before and not (before.isascii() and before.isdecimal() and len(before) < 19):
        abort(400)
    query = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(PAGE)
    if before:
        query = query.where(AuditEntry.id < int(before))
    if target:
        query = query.where(AuditEntry.target == target[:80])
    with services().store.read() as session:
        lines = told(session, session.scalars(query).all())
    return render_template(
        "admin/audit.html", lines=lines, target=target, target_text=target_text(target), page=PAGE
    )
