"""The verdict: what a judgement comes to, as plain data. Everything a reader sees is made from it, in either language;
`judge/verdict.schema.json` is its public description."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.core.status import Status

# What JSON holds. Values of cases appear in the display form of `judge.core.values`.
Json = Any


@dataclass(frozen=True)
class Message:
    """Something to be said: `code` names the sentence in `wording`, `params` fill it."""

    code: str
    params: Mapping[str, Json] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        return {"code": self.code, "params": dict(self.params)}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Message:
        return cls(data["code"], data["params"])


@dataclass(frozen=True)
class Mismatch:
    """One way in which an output is not the expected one. `field` is a path such as `kv_indptr` or `parts[2].lse`."""

    code: str
    field: str
    params: Mapping[str, Json] = dataclasses.field(default_factory=dict)

    def redacted(self) -> Mismatch:
        """What a hidden case may tell: which output and what kind; no values, no index."""
        return Mismatch(self.code, self.field.partition("[")[0], {})

    def to_json(self) -> dict[str, Json]:
        return {"code": self.code, "field": self.field, "params": dict(self.params)}


@dataclass
class CaseResult:
    """How one case went. `name` is its own for a public case and "hidden" for every hidden one: hidden cases have no
    number that could be counted up. `time_ms` is CPU time, rounded to 10 ms for hidden cases. `got`, `mismatches` and
    `output` are filled for public cases only."""

    name: str
    group: str
    status: Status
    time_ms: int = 0
    message: Message | None = None
    got: Json = None
    mismatches: list[Mismatch] = field(default_factory=list)
    output: str = ""

    def to_json(self) -> dict[str, Json]:
        data: dict[str, Json] = {
            "name": self.name,
            "group": self.group,
            "status": str(self.status),
            "time_ms": self.time_ms,
            "message": self.message.to_json() if self.message else None,
        }
        if self.group == "public":
            data |= {
                "got": self.got,
                "mismatches": [m.to_json() for m in self.mismatches],
                "output": self.output,
            }
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> CaseResult:
        """The inverse of `to_json`."""
        message = Message.from_json(data["message"]) if data["message"] else None
        result = cls(data["name"], data["group"], Status(data["status"]), data["time_ms"], message)
        if result.group == "public":
            result.got, result.output = data["got"], data["output"]
            result.mismatches = [Mismatch(m["code"], m["field"], m["params"]) for m in data["mismatches"]]
        return result


@dataclass
class Verdict:
    """The outcome of one judgement of one submission."""

    problem: int
    version: str
    status: Status
    passed: int
    total: int
    time_ms: int
    tier: str
    kernels: str
    versions: dict[str, str]
    cases: list[CaseResult]
    message: Message | None = None
    diagnosis: list[dict[str, Json]] = field(default_factory=list)
    counterexample: dict[str, Json] | None = None

    def to_json(self) -> dict[str, Json]:
        """The public form; see `judge/verdict.schema.json`."""
        return {
            "problem": self.problem,
            "version": self.version,
            "status": str(self.status),
            "passed": self.passed,
            "total": self.total,
            "time_ms": self.time_ms,
            "tier": self.tier,
            "kernels": self.kernels,
            "versions": self.versions,
            "cases": [c.to_json() for c in self.cases],
            "message": self.message.to_json() if self.message else None,
            "diagnosis": self.diagnosis,
            "counterexample": self.counterexample,
        }


# When several cases fail in different ways, the verdict is the first of these that occurred: a program that
# crashes or runs out of time says more about itself by that than by a wrong value elsewhere.
SEVERITY = (
    Status.SYSTEM_ERROR,
    Status.COMPILE_ERROR,
    Status.MEMORY_LIMIT,
    Status.TIME_LIMIT,
    Status.OUTPUT_LIMIT,
    Status.RUNTIME_ERROR,
    Status.WRONG_ANSWER,
)


def overall(statuses: list[Status]) -> Status:
    """The status of a submission from those of all its cases. No case, or one that was not run: not accepted."""
    for status in SEVERITY:
        if status in statuses:
            return status
    if statuses and all(s is Status.ACCEPTED for s in statuses):
        return Status.ACCEPTED
    return Status.SYSTEM_ERROR
