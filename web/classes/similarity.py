"""Which programs of a class are more alike than the problem makes them.

Short functions that solve one problem look alike by themselves. So a program is read as a sequence of tokens (names by
the order in which they first appear, comments and layout left out), cut into overlapping runs of RUN tokens, and what
many learners have, or the starter has, says nothing: a pair is told by the rare runs it shares. Beside it stands what
renaming cannot hide and nobody types twice by chance: lines of comment or odd spacing that are the same to the letter.
A report for a teacher to look at, never a verdict.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

RUN = 8  # tokens: about a line and a half
COMMON_PART = 0.34  # runs that more of the class have than this say nothing
FEW = 3  # learners that may have a run in common in a class however small
LEAST_SHARED = 4  # rare runs
LEAST_SCORE = 0.35
SKIPPED = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)


@dataclass(frozen=True)
class Pair:
    """Two learners' programs. `score`: which part of the smaller one's rare runs the other has, 0 to 1; `shared`: how
    many; `letters`: lines of comment that are the same to the letter; `same`: all of the text is."""

    one: str
    two: str
    score: float
    shared: int
    letters: int
    same: bool


def pairs(programs: Mapping[str, str], starter: str = "", own: Iterable[str] = ()) -> list[Pair]:
    """The suspicious pairs among programs by learner, the most alike first. `starter`, `own`: texts that everybody was
    given, whose runs say nothing."""
    found = {who: runs(text) for who, text in programs.items()}
    texts = (starter, *own)
    given = set().union(*map(runs, texts))
    printed = set().union(*map(_comments, texts))
    spread = Counter(run for mine in found.values() for run in mine)
    most = max(FEW, round(COMMON_PART * len(programs)))
    rare = {who: {r for r in mine if r not in given and spread[r] <= most} for who, mine in found.items()}
    comments = {who: _comments(text) - printed for who, text in programs.items()}
    said = Counter(line for mine in comments.values() for line in mine)
    letters_of = {who: _letters(text) for who, text in programs.items()}
    untouched = _letters(starter)
    suspicious = []
    for one, two in combinations(sorted(programs), 2):
        shared = rare[one] & rare[two]
        smaller = min(len(rare[one]), len(rare[two]))
        score = len(shared) / smaller if smaller else 0.0
        letters = sum(said[line] <= most for line in comments[one] & comments[two])
        same = letters_of[one] == letters_of[two] != untouched
        if same or letters or (len(shared) >= LEAST_SHARED and score >= LEAST_SCORE):
            suspicious.append(Pair(one, two, round(score, 2), len(shared), letters, same))
    return sorted(suspicious, key=lambda p: (-p.same, -p.letters, -p.score, -p.shared, p.one, p.two))


def runs(text: str) -> set[tuple[str, ...]]:
    """The runs of RUN tokens of a program; of what is no Python, of its words."""
    tokens = _tokens(text)
    return {tuple(tokens[i : i + RUN]) for i in range(max(1, len(tokens) - RUN + 1))} if tokens else set()


def _tokens(text: str) -> list[str]:
    names: dict[str, str] = {}
    tokens = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in SKIPPED:
                continue
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                tokens.append(names.setdefault(token.string, f"name{len(names)}"))
            else:
                tokens.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        return text.split()
    return tokens


def _comments(text: str) -> set[str]:
    """Lines of comment that are long enough not to be the same by chance."""
    found = set()
    for line in text.splitlines():
        _, sign, comment = line.partition("#")
        words = " ".join(comment.split())
        if sign and len(words) >= 12:
            found.add(words)
    return found


def _letters(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
