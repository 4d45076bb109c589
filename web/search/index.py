"""What can be found, in memory: the course is a few hundred things, so every query looks at all of them."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from judge.packages import Package
from tools.steps import Chapter, tree_files, tree_sources
from tools.steps_manifest import ROOT

LANGS = ("zh", "en")
MOST = 30  # of each kind: more than anybody reads
MOST_TERMS = 8


@dataclass(frozen=True)
class Entry:
    """Something that can be found. `number`: what it is called by, if it has one; `title` and `more` by language; `where`:
    the chapter (and the section of it, or the file and its `line`) that a link leads to. Words of both languages are searched."""

    kind: str
    number: int | None
    title: Mapping[str, str]
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    chapter: int | None = None
    anchor: str | None = None
    line: int | None = None
    titles: tuple[str, ...] = ()
    words: str = ""


def _entry(
    kind: str, number: int | None, title: Mapping[str, str], words: Iterable[str], **more: object
) -> Entry:
    titles = tuple(folded(title[lang]) for lang in LANGS)
    text = "\n".join([str(number) if number is not None else "", *titles, *map(folded, words)])
    return Entry(kind, number, title, titles=titles, words=text, **more)  # type: ignore[arg-type]


def make_index(packages: Mapping[int, Package], chapters: Mapping[int, Chapter]) -> list[Entry]:
    """Everything there is, problems first, in the order of the course."""
    entries = [
        _entry(
            "problem",
            p.id,
            {lang: p.title[lang] for lang in LANGS},
            [p.slug, p.entry, *(word for lang in LANGS for word in (p.info.idea[lang], *p.tags[lang]))],
            more={lang: tuple(p.tags[lang]) for lang in LANGS},
            chapter=p.chapter,
        )
        for p in packages.values()
    ]
    entries += [_entry("chapter", c.number, c.title, [], chapter=c.number) for c in chapters.values()]
    for c in chapters.values():
        entries += [
            _entry("section", None, heading, [], chapter=c.number, anchor=anchor)
            for anchor, heading in c.sections.items()
        ]
    if chapters:
        last = max(chapters)
        explained = {path: c.number for c in chapters.values() for path in (*c.new, *c.sources)}
        entries += [
            _entry(
                "file",
                None,
                {lang: path for lang in LANGS},
                [],
                chapter=explained.get(path, last),
                anchor=path,
            )
            for path in sorted([*tree_files(last), *tree_sources(last)])
        ]
        entries += [
            _entry(
                "symbol",
                None,
                {lang: name for lang in LANGS},
                [],
                chapter=explained.get(path, last),
                anchor=path,
                line=line,
            )
            for path in sorted(tree_files(last))
            for name, line in symbols(path)
        ]
    return entries


def symbols(path: str) -> Iterator[tuple[str, int]]:
    """Functions, classes and methods (`Class.method`) of a file of the engine, with their lines."""
    made = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, made):
            yield node.name, node.lineno
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{m.name}", m.lineno) for m in node.body if isinstance(m, made))


def folded(text: str) -> str:
    """Text as it is compared: full-width forms, upper and lower case are the same."""
    return unicodedata.normalize("NFKC", text).casefold()


def terms_of(query: str) -> list[str]:
    """The words of a query; what lies beyond the first few is left out."""
    return folded(query).split()[:MOST_TERMS]


def search(index: list[Entry], query: str) -> dict[str, list[Entry]]:
    """Kind -> what has every word of the query, best first; kinds without a find are left out."""
    terms = terms_of(query)
    if not terms:
        return {}
    found = [(_rank(e, terms), i, e) for i, e in enumerate(index) if all(t in e.words for t in terms)]
    groups: dict[str, list[Entry]] = {}
    for _, _, entry in sorted(found, key=lambda f: f[:2]):
        group = groups.setdefault(entry.kind, [])
        if len(group) < MOST:
            group.append(entry)
    return groups


def _rank(entry: Entry, terms: list[str]) -> int:
    """0 for what is called by that very number, then by where the words stand: a title's beginning, a title, elsewhere."""
    if [str(entry.number)] == terms:
        return 0
    if any(title.startswith(terms[0]) for title in entry.titles):
        return 1
    return 2 if any(all(t in title for t in terms) for title in entry.titles) else 3
