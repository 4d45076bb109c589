"""A submission and its verdict in the reader's language, ready for a template or for our own scripts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from flask_babel import gettext

from judge.core.picture import pictures
from judge.core.status import Status
from judge.core.verdict import Json
from judge.core.wording import say, say_diagnosis, say_status
from judge.packages import Package, PublicCase
from judge.store.reading import Details
from web.course.problems import onward
from web.course.progress import Onward
from web.course.sections import section_link
from web.i18n import language
from web.problems.reference import may_see_reference
from web.together import Together, fail_together


@dataclass(frozen=True)
class CaseView:
    """One case of a verdict. Inputs, answer and output are there for public cases only. `wrong`: the fields in which the
    judge found something; None if it says nothing about fields."""

    label: str
    status: Status
    status_text: str
    time_ms: int
    message: str
    hidden: bool
    case: PublicCase | None = None
    got: Json = None
    mismatches: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    output: str = ""
    wrong: frozenset[str] | None = None


@dataclass(frozen=True)
class Diagnosis:
    """One statement about why, and where the chapter explains it."""

    kind: str
    text: str
    section: tuple[str, str] | None
    apart: Json = None


@dataclass(frozen=True)
class Counterexample:
    """The smallest failing case that may be shown whole."""

    inputs: Json
    expected: Json
    got: Json
    message: str
    mismatches: list[str]
    drawn: list[str]
    wrong: frozenset[str] | None


@dataclass(frozen=True)
class Result:
    """A submission as a page shows it; the fields after `ahead` are those of a verdict. `again`: it is being judged again."""

    id: int
    problem: int
    status: Status
    status_text: str
    public_only: bool
    created_at: float
    live: bool
    again: bool
    ahead: int = 0
    passed: int = 0
    total: int = 0
    time_ms: int = 0
    tier: str = ""
    kernels: str = ""
    version: str = ""
    message: str = ""
    cases: list[CaseView] = field(default_factory=list)
    together: list[Together] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    diagnosis: list[Diagnosis] = field(default_factory=list)
    counterexample: Counterexample | None = None
    picture: str | None = None
    reference: bool = False
    onward: Onward | None = None
    tolerance: dict[str, float] = field(default_factory=dict)

    @property
    def ran(self) -> bool:
        """At least one case was run, so there is something to show of them."""
        return any(c.status is not Status.NOT_RUN for c in self.cases)


def present(found: Details, package: Package | None) -> Result:
    """The result of a submission. `package` may be None if its problem is gone: then without the cases'
    inputs."""
    lang = language()
    base: dict[str, Any] = {
        "id": found.id,
        "problem": found.problem,
        "status": found.status,
        "status_text": say_status(found.status, lang),
        "public_only": found.public_only,
        "created_at": found.created_at,
        "live": not found.status.is_final,
        "again": found.again,
        "ahead": found.ahead,
        "total": found.total or 0,
    }
    verdict = found.verdict
    if verdict is None:
        return Result(**base)
    public = {c.name: c for c in package.public} if package else {}
    place = {name: i for i, name in enumerate(public)}
    in_order = sorted(verdict["cases"], key=lambda c: place.get(_own_name(c), len(place)))
    requests = package.info.requests if package else {}
    cases = [case_view(c, public, i, requests) for i, c in enumerate(in_order, 1)]
    base |= {"total": verdict["total"]}
    return Result(
        **base,
        passed=verdict["passed"],
        time_ms=verdict["time_ms"],
        tier=verdict["tier"],
        kernels=verdict["kernels"],
        version=verdict["version"],
        message=_said(verdict["message"]),
        cases=cases,
        together=fail_together(verdict["cases"], lang),
        diagnosis=[_diagnosis(d) for d in verdict["diagnosis"] if d["kind"] != "common"],
        shared=[say_diagnosis(d, lang) for d in verdict["diagnosis"] if d["kind"] == "common"],
        counterexample=_counterexample(verdict["counterexample"], requests),
        picture=package.picture if package else None,
        reference=_solves(found) and package is not None and may_see_reference(package),
        onward=onward(found.problem) if _solves(found) else None,
        tolerance=package.info.tolerance if package else {},
    )


def _solves(found: Details) -> bool:
    """Whether this verdict is one that the reader is led on from: to the reference, to what comes next."""
    return found.status is Status.ACCEPTED and not found.public_only


def case_view(
    case: dict[str, Json], public: dict[str, PublicCase], number: int, requests: dict[str, str]
) -> CaseView:
    """A case as it stands in a verdict. `requests`: the problem's, for pictures."""
    hidden = case["group"] == "hidden"
    name = _own_name(case)
    status = Status(case["status"])
    mismatches = [say(m, language()) for m in case.get("mismatches") or []]
    shown = public.get(name)
    wrong = shown is not None and not hidden and status is Status.WRONG_ANSWER
    return CaseView(
        label=gettext("hidden case %(n)s", n=number) if hidden else name,
        status=status,
        status_text=say_status(status, language()),
        time_ms=case["time_ms"],
        message="" if mismatches else _said(case["message"], hidden=hidden),
        hidden=hidden,
        case=None if hidden else shown,
        got=case.get("got"),
        mismatches=mismatches,
        drawn=pictures(shown.expected, case.get("got"), requests, language()) if wrong and shown else [],
        output=case.get("output") or "",
        wrong=_wrong_fields(status, case.get("mismatches")),
    )


def _wrong_fields(status: Status, mismatches: Json) -> frozenset[str] | None:
    """The fields of an answer that the judge's mismatches are about: `parts` for `parts[2].lse`."""
    if status is Status.ACCEPTED:
        return frozenset()
    found = frozenset(re.split(r"[\[.]", m["field"])[0] for m in mismatches or [])
    return found - {""} or None


def _own_name(case: dict[str, Json]) -> str:
    name: str = case["name"]
    return name.removeprefix("public/")


def _said(message: dict[str, Json] | None, *, hidden: bool = False) -> str:
    return say(message, language(), hidden=hidden) if message else ""


def _diagnosis(entry: dict[str, Json]) -> Diagnosis:
    section = section_link(entry["section"]) if entry.get("section") else None
    return Diagnosis(entry["kind"], say_diagnosis(entry, language()), section, entry.get("apart"))


def _counterexample(data: dict[str, Json] | None, requests: dict[str, str]) -> Counterexample | None:
    if data is None:
        return None
    mismatches = [say(m, language()) for m in data["mismatches"] or []]
    return Counterexample(
        inputs=data["inputs"],
        expected=data["expected"],
        got=data["got"],
        message="" if mismatches else _said(data["message"]),
        mismatches=mismatches,
        drawn=pictures(data["expected"], data["got"], requests, language()),
        wrong=_wrong_fields(Status(data["status"]), data["mismatches"]),
    )
