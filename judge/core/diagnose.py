"""Which known mistake explains what a submission gave: after the verdict, from the whole vector of cases.

A known mistake is named only if it gives the learner's output wherever it gives a wrong one, on passed cases too.
Outputs are compared by component: a field's dtype, and its content. Two mistakes in different components are
therefore both found; so is one mistake that shows in several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.core.case import Failure, Outcome
from judge.core.compare import Comparer

# (field, "dtype" | "content"), or ERROR for an exception in place of outputs. Content is shape and values together:
# values of another shape cannot be right.
Component = tuple[str, str]
ERROR: Component = ("", "error")
EXTRA: Component = ("", "extra")
CLOSER = 10.0  # how many times nearer a float must be to the mistake's output than to the right one


@dataclass(frozen=True)
class Finding:
    """One statement about a submission. `names` are known mistakes: one, or several that the cases at hand cannot
    tell apart. `agreed` of `failed` failing cases are explained. `fields` are those it explains; if more than
    these is wrong, `params` has `part`."""

    kind: str
    names: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    agreed: int = 0
    failed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """A known mistake held against a submission. `parts`: the components in which it is ever wrong; `explained`: those
    of them in which the submission gives the same on every case; `agreed`: on how many failing cases all is the same.
    """

    name: str
    parts: frozenset[Component]
    explained: frozenset[Component]
    agreed: int


class Diagnoser:
    """Compares a submission with known mistakes over a fixed list of cases.

    `answers[c]` are the right outputs of case c, `mistakes[name][c]` what the known mistake gives there;
    `deviation_of(name, c)` may know in what the latter differ, so that it is found out once for many submissions.
    """

    def __init__(
        self,
        comparer: Comparer,
        answers: Sequence[Mapping[str, Any]],
        mistakes: Mapping[str, Sequence[Outcome]],
        deviation_of: Callable[[str, int], frozenset[Component] | None] | None = None,
    ) -> None:
        self.comparer = comparer
        self.answers = answers
        self.mistakes = mistakes
        self._deviation_of = deviation_of or (lambda name, case: None)

    def diagnose(self, outcomes: Sequence[Outcome]) -> list[Finding]:
        """Findings for a submission that gave `outcomes`, best first: named mistakes that together explain the most,
        else partial agreement, else nothing."""
        own = [self._deviation(o, i) for i, o in enumerate(outcomes)]
        failed = [i for i, d in enumerate(own) if d]
        if not failed:
            return []
        candidates = []
        for name, given in self.mistakes.items():
            deviations = self.deviations(name)
            parts = frozenset().union(*(d for i, d in enumerate(deviations) if outcomes[i] is not None))
            if parts:
                candidates.append(self._candidate(name, given, deviations, parts, outcomes, failed))
        wrong = frozenset().union(*own)
        named = self._named([c for c in candidates if self._says_enough(c, wrong)], own, failed, outcomes)
        if named:
            return named
        best = max((c.agreed for c in candidates), default=0)
        if best >= 2 and best * 2 >= len(failed):
            names = tuple(c.name for c in candidates if c.agreed == best)
            return [Finding("partial", names[:2], (), best, len(failed))]
        return []

    def possible(self, outcomes: Sequence[Outcome]) -> list[str]:
        """Mistakes that these cases do not rule out: only they need be run on further cases."""
        if not any(isinstance(o, Mapping) or (isinstance(o, Failure) and o.ours) for o in outcomes):
            return []  # nothing was given that could be compared
        named = []
        failed = [i for i, o in enumerate(outcomes) if self._deviation(o, i)]
        for name, given in self.mistakes.items():
            deviations = self.deviations(name)
            parts = frozenset().union(*(d for i, d in enumerate(deviations) if outcomes[i] is not None))
            candidate = self._candidate(name, given, deviations, parts, outcomes, failed)
            if candidate.explained or candidate.agreed >= 2 or not parts:
                named.append(name)
        return named

    def _candidate(
        self,
        name: str,
        given: Sequence[Outcome],
        deviations: Sequence[frozenset[Component]],
        parts: frozenset[Component],
        outcomes: Sequence[Outcome],
        failed: Sequence[int],
    ) -> Candidate:
        """How well one mistake explains the submission: component by component over all cases, and case by case."""
        explained = parts
        agreed = 0
        for i, (mine, theirs) in enumerate(zip(outcomes, given, strict=True)):
            if mine is None:
                continue
            same = self._agreement(mine, theirs, i, parts)
            explained &= same
            if i in failed and deviations[i] and deviations[i] <= same and self.alike(mine, theirs):
                agreed += 1
        if ERROR in parts and explained != parts:  # an error has no components of its own: all or nothing
            explained = frozenset()
        return Candidate(name, parts, explained, agreed)

    def _says_enough(self, candidate: Candidate, wrong: frozenset[Component]) -> bool:
        """Whether what a mistake explains is enough to name it. That a yes or no is the same wherever it is wrong says
        nothing, unless no more than that is wrong: any broken tree is broken."""
        if candidate.explained >= wrong:
            return True
        return any(
            not all(isinstance(answer.get(name), bool) for answer in self.answers)
            for name, _ in candidate.explained
        )

    def _named(
        self,
        candidates: list[Candidate],
        own: Sequence[frozenset[Component]],
        failed: Sequence[int],
        outcomes: Sequence[Outcome],
    ) -> list[Finding]:
        wrong = left = frozenset().union(*own)
        findings: list[Finding] = []
        while candidates:
            # Most of what is unexplained; then the mistake of which nothing is missing; then the package's order.
            best = max(candidates, key=lambda c: (len(c.explained & left), c.explained == c.parts))
            if not best.explained & left:
                break
            twins = [
                c.name
                for c in candidates
                if c is not best and c.parts == best.parts and self._same(best.name, c.name, outcomes)
            ]
            candidates = [c for c in candidates if c is not best and c.name not in twins]
            left -= best.explained
            agreed = sum(1 for i in failed if own[i] & best.explained)
            fields = tuple(sorted({f for f, _ in best.explained if f}))
            kind = "tie" if twins else "mistake"
            params = {} if best.explained >= wrong else {"part": True}
            findings.append(Finding(kind, (best.name, *twins), fields, agreed, len(failed), params))
        if left and findings:
            findings.append(
                Finding("unexplained", (), tuple(sorted({f for f, _ in left if f})), 0, len(failed))
            )
        return findings

    def _same(self, a: str, b: str, outcomes: Sequence[Outcome]) -> bool:
        """Whether two mistakes give the same on every case that was run."""
        return all(
            outcomes[i] is None or self.alike(x, y)
            for i, (x, y) in enumerate(zip(self.mistakes[a], self.mistakes[b], strict=True))
        )

    def deviations(self, name: str) -> list[frozenset[Component]]:
        """Case by case, the components in which a known mistake differs from the right answer."""
        known = [self._deviation_of(name, i) for i in range(len(self.answers))]
        return [self._deviation(self.mistakes[name][i], i) if d is None else d for i, d in enumerate(known)]

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
            if name not in want:
                found.add(EXTRA)  # its name is the submission's own word, and is not repeated
                continue
            if name not in got:
                found |= {(name, "dtype"), (name, "content")}
                continue
            for m in self.comparer.field(name, got[name], want[name]):
                found.add((name, "dtype" if m.code == "dtype" else "content"))
                if m.code == "type" and m.field == name:  # what is no tensor has no dtype that could agree
                    found.add((name, "dtype"))
        return frozenset(found)

    def alike(self, a: Outcome, b: Outcome) -> bool:
        """Whether two outcomes of one case are the same."""
        if isinstance(a, Failure) or isinstance(b, Failure):
            return isinstance(a, Failure) and isinstance(b, Failure) and (a.type, a.code) == (b.type, b.code)
        if a is None or b is None:
            return a is b
        return not self._difference(a, b)

    def _agreement(
        self, mine: Outcome, theirs: Outcome, case: int, parts: frozenset[Component]
    ) -> frozenset[Component]:
        """The components of `parts` in which a submission gives on one case what the mistake gives."""
        if mine is None or theirs is None:
            return frozenset()
        if isinstance(mine, Failure) or isinstance(theirs, Failure):
            both = isinstance(mine, Failure) and isinstance(theirs, Failure) and mine.ours and theirs.ours
            return parts if both and self.alike(mine, theirs) else frozenset()
        same = parts - self._difference(mine, theirs)
        return frozenset(c for c in same if c[1] != "content" or self._nearer(c[0], mine, theirs, case))

    def _nearer(self, name: str, mine: Mapping[str, Any], theirs: Mapping[str, Any], case: int) -> bool:
        """For floats that differ between mistake and answer: the learner's must be ten times nearer the mistake's."""
        import torch

        a: Any = mine.get(name)
        b: Any = theirs.get(name)
        right: Any = self.answers[case].get(name)
        if not all(isinstance(x, torch.Tensor) and x.is_floating_point() for x in (a, b, right)):
            return True
        if a.shape != b.shape or b.shape != right.shape or not self.comparer.field(name, b, right):
            return True
        near = (a.double() - b.double()).nan_to_num().abs().max()
        far = (a.double() - right.double()).nan_to_num().abs().max()
        return bool(near * CLOSER <= far)
