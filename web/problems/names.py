"""The names that a problem gives to whoever solves it: what the editor completes."""

from __future__ import annotations

import keyword
import re
import tokenize

from judge.packages import Package

NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
INLINE_CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)
# Types and one-letter names are quicker typed than chosen.
LEFT_OUT = {*keyword.kwlist, "int", "float", "bool", "str", "list", "dict", "tuple", "self"}


def given_names(package: Package, lang: str) -> list[dict[str, str]]:
    """What stands in the signature, the statement's code and the starter, each once: {label, kind}. Nothing of the reference
    is among it. `kind` is CodeMirror's: "function", "property" for a field of the answer or after a dot, "variable"."""
    kinds: dict[str, str] = {package.entry: "function"}
    for name in package.parameters:
        kinds.setdefault(name, "variable")
    for name in package.info.outputs:
        kinds.setdefault(name, "property")
    statement = FENCE.sub("", package.text(f"statement.{lang}.md"))
    for text in (_without_prose(package.starter), *INLINE_CODE.findall(statement)):
        for name in NAME.findall(text):
            kinds.setdefault(name, "property" if "." in name else "variable")
    return [{"label": n, "kind": k} for n, k in kinds.items() if _is_worth(n)]


def _without_prose(program: str) -> str:
    """A program without its strings and comments."""
    prose = (tokenize.STRING, tokenize.COMMENT)
    lines = program.splitlines(keepends=True)
    return "".join(
        " " if token.type in prose else token.string if token.string in (".", "\n") else f"{token.string}\n"
        for token in tokenize.generate_tokens(iter(lines).__next__)
    ).replace("\n.", ".")


def _is_worth(name: str) -> bool:
    return len(name) > 2 and name not in LEFT_OUT
