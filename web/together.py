"""Which cases fail together: those that go wrong in the same way, public and hidden ones side by side."""

from __future__ import annotations

from dataclasses import dataclass, field

from judge.core.status import Status
from judge.core.verdict import Json, Mismatch
from judge.core.wording import say, say_mismatch, say_status

PASSED = (Status.ACCEPTED, Status.NOT_RUN)


@dataclass
class Together:
    """Cases that fail in one way. `texts`: what is wrong, without values; `public` names those that have a name."""

    texts: list[str]
    public: list[str] = field(default_factory=list)
    hidden: int = 0

    @property
    def count(self) -> int:
        """How many cases there are."""
        return len(self.public) + self.hidden


def fail_together(cases: list[dict[str, Json]], lang: str) -> list[Together]:
    """The failing cases of a verdict in groups, the largest first. What is said of a group is what a hidden case may tell."""
    groups: dict[object, Together] = {}
    for case in cases:
        if Status(case["status"]) in PASSED:
            continue
        key, texts = _way(case, lang)
        group = groups.setdefault(key, Together(texts))
        if case["group"] == "hidden":
            group.hidden += 1
        else:
            group.public.append(case["name"].removeprefix("public/"))
    return sorted(groups.values(), key=lambda group: -group.count)


def _way(case: dict[str, Json], lang: str) -> tuple[object, list[str]]:
    """In which way a case fails, as something to compare and as sentences."""
    message = case["message"]
    if message is None:
        return case["status"], [say_status(case["status"], lang)]
    found = case.get("mismatches") or (message["params"]["list"] if message["code"] == "mismatches" else [])
    if found:
        shown = [Mismatch(m["code"], m["field"], m["params"]).redacted() for m in found]
        kinds = list(dict.fromkeys((m.code, m.field) for m in shown))
        return (case["status"], frozenset(kinds)), [
            say_mismatch(Mismatch(*k), lang, hidden=True) for k in kinds
        ]
    kind = message["params"].get("type") if message["code"].startswith("exception") else None
    if kind:
        return (case["status"], kind), [str(kind)]
    return (case["status"], message["code"]), [say(message, lang, hidden=case["group"] == "hidden")]
