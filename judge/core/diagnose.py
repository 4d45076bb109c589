"""Which known mistake explains what a submission gave: after the verdict, from the whole vector of cases.

A known mistake is named only if it gives the learner's output wherever it gives a wrong one, on passed cases too.
Outputs are compared by component: a field's dtype, its shape, its values. Two mistakes in different components are
therefore both found; so is one mistake that shows in several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.core.case import Failure, Outcome
from judge.core.compare import Comparer

# (field, "dtype" | "shape" | "value" | "kind"), or ERROR for an exception in place of outputs.
Component = tuple[str, str]
ERROR: Component = ("", "error")
CLOSER = 10.0  # how many times nearer a float must be to the mistake's output than to the right one


@dataclass(frozen=True)
class Finding:
    """One statement about a submission. `names` are known mistakes: one, or several that the cases at hand cannot
    tell apart. `agreed` of `failed` failing cases are explained. `fields` are those it explains."""

    kind: str
    names: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    agreed: int = 0
    failed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)


class Diagnoser:
    """Compares a submission with known mistakes over a fixed list of cases.

    `answers[c]` are the right outputs of case c, `mistakes[name][c]` what the known mistake gives there.
    """

    def __init__(
        self,
        comparer: Comparer,
        answers: Sequence[Mapping[str, Any]],
        mistakes: Mapping[str, Sequence[Outcome]],
    ) -> None:
        self.comparer = comparer
        self.answers = answers
        self.mistakes = mistakes

    def diagnose(self, outcomes: Sequence[Outcome]) -> list[Finding]:
        """Findings for a submission that gave `outcomes`, best first: named mistakes that together explain the most,
        else partial agreement, else nothing."""
        own = [self._deviation(o, i) for i, o in enumerate(outcomes)]
        failed = [i for i, d in enumerate(own) if d]
        if not failed:
            return []
        full: dict[str, frozenset[Component]] = {}
        partial: dict[str, int] = {}
        for name, given in self.mistakes.items():
            deviations = [self._deviation(o, i) for i, o in enumerate(given)]
            parts = frozenset(c for i, d in enumerate(deviations) if outcomes[i] is not None for c in d)
            if not parts:
                continue
            agrees = [
                outcomes[i] is None or self._agrees(outcomes[i], given[i], i, parts) for i in range(len(given))
            ]
            if all(agrees):
                full[name] = parts
            else:
                partial[name] = sum(1 for i in failed if agrees[i] and deviations[i])
        if full:
            return self._named(full, own, failed, outcomes)
        best = max(partial.values(), default=0)
        if best >= 2 and best * 2 >= len(failed):
            names = tuple(n for n, k in partial.items() if k == best)
            return [Finding("partial", names[:2], (), best, len(failed))]
        return []

    def _named(
        self,
        full: Mapping[str, frozenset[Component]],
        own: Sequence[frozenset[Component]],
        failed: Sequence[int],
        outcomes: Sequence[Outcome],
    ) -> list[Finding]:
        left = set().union(*own)
        findings: list[Finding] = []
        open_names = dict(full)
        while open_names:
            # The mistake that explains most of what is unexplained; ties by the order of the package.
            name = max(open_names, key=lambda n: len(open_names[n] & left))
            parts = open_names.pop(name)
            if not parts & left:
                break
            twins = [n for n, p in open_names.items() if p == parts and self._same(name, n, outcomes)]
            for twin in twins:
                del open_names[twin]
            left -= parts
            agreed = sum(1 for i in failed if own[i] & parts)
            findings.append(
                Finding(
                    "tie" if twins else "mistake",
                    (name, *twins),
                    tuple(sorted({f for f, _ in parts if f})),
                    agreed,
                    len(failed),
                )
            )
        if left and findings:
            rest = tuple(sorted({f for f, _ in left if f}))
            findings.append(Finding("unexplained", (), rest, 0, len(failed)))
        return findings

    def _same(self, a: str, b: str, outcomes: Sequence[Outcome]) -> bool:
        """Whether two mistakes give the same on every case that was run."""
        return all(
            outcomes[i] is None or self._equal(x, y, i)
            for i, (x, y) in enumerate(zip(self.mistakes[a], self.mistakes[b], strict=True))
        )

    def differing_case(self, a: str, b: str) -> int | None:
        """The first case on which two mistakes differ, or None."""
        for i, (x, y) in enumerate(zip(self.mistakes[a], self.mistakes[b], strict=True)):
            if not self._equal(x, y, i):
                return i
        return None

    def _deviation(self, outcome: Outcome, case: int) -> frozenset[Component]:
        """The components in which an outcome differs from the right answer."""
        if outcome is None:
            return frozenset()
        if isinstance(outcome, Failure):
            return frozenset({ERROR})
        return self._difference(outcome, self.answers[case])

    def _difference(self, got: Mapping[str, Any], want: Mapping[str, Any]) -> frozenset[Component]:
        found: set[Component] = set()
        for name in {**want, **got}:
            if name not in got or name not in want:
                found.add((name, "kind"))
                continue
            for m in self.comparer.field(name, got[name], want[name]):
                kind = m.code if m.code in ("dtype", "shape", "value") else "kind"
                found.add((name, kind))
                if kind in ("shape", "kind"):
                    found.add((name, "value"))
        return frozenset(found)

    def _equal(self, a: Outcome, b: Outcome, case: int) -> bool:
        if isinstance(a, Failure) or isinstance(b, Failure):
            return isinstance(a, Failure) and isinstance(b, Failure) and (a.type, a.code) == (b.type, b.code)
        if a is None or b is None:
            return a is b
        return not self._difference(a, b)

    def _agrees(self, mine: Outcome, theirs: Outcome, case: int, parts: frozenset[Component]) -> bool:
        """Whether the learner gave what the mistake gives, in the components `parts` in which it is ever wrong."""
        if isinstance(mine, Failure) or isinstance(theirs, Failure):
            return (
                isinstance(mine, Failure)
                and isinstance(theirs, Failure)
                and mine.ours
                and theirs.ours
                and (mine.type, mine.code) == (theirs.type, theirs.code)
            )
        assert mine is not None
        assert theirs is not None
        if self._difference(mine, theirs) & parts:
            return False
        return all(self._nearer(n, mine, theirs, case) for n, kind in parts if kind == "value")

    def _nearer(self, name: str, mine: Mapping[str, Any], theirs: Mapping[str, Any], case: int) -> bool:
        """For floats that differ between mistake and answer: the learner's must be ten times nearer the mistake's."""
        import torch

        a, b, right = mine.get(name), theirs.get(name), self.answers[case].get(name)
        if not all(isinstance(x, torch.Tensor) and x.is_floating_point() for x in (a, b, right)):
            return True
        if a.shape != b.shape or b.shape != right.shape or not self.comparer.field(name, b, right):
            return True
        near = (a.double() - b.double()).nan_to_num().abs().max()
        far = (a.double() - right.double()).nan_to_num().abs().max()
        return bool(near * CLOSER <= far)
