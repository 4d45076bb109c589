"""Problem packages: one folder a problem, read, checked and hashed. Nothing of it is executed here; a package that is
broken is refused with file, line and reason, and takes nothing else down."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge.core.values import float_text
from tools.steps_manifest import StepError, get_chapter

ROOT = Path(__file__).resolve().parent.parent
PROBLEMS = ROOT / "problems"
LANGS = ("zh", "en")
CASE_REFERENCE = re.compile(r"^\{\{case ([\w-]+)\}\}$", re.MULTILINE)


class PackageError(ValueError):
    """A package cannot be used: says which file, which line if one is known, and what to do."""

    def __init__(self, file: Path, what: str, line: int | None = None) -> None:
        self.file, self.line, self.what = file, line, what
        super().__init__(f"{file}{f':{line}' if line else ''}: {what}")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Bilingual(Strict):
    zh: str = Field(min_length=1)
    en: str = Field(min_length=1)

    def __getitem__(self, lang: str) -> str:
        return {"zh": self.zh, "en": self.en}[lang]


class BilingualTags(Strict):
    zh: list[str]
    en: list[str]

    def __getitem__(self, lang: str) -> list[str]:
        return {"zh": self.zh, "en": self.en}[lang]


class Limits(Strict):
    """Limits of one submission. CPU time is the program's own, import of torch not counted."""

    case_ms: int = Field(1000, ge=10, description="CPU milliseconds of one case")
    total_ms: int = Field(
        5000, ge=10, description="CPU milliseconds of all cases and of loading the submission"
    )
    memory_mb: int = Field(256, ge=16, description="memory above what torch and the tree take")
    output_kb: int = Field(64, ge=1, description="what may be printed in all")
    reply_kb: int = Field(4096, ge=1, description="what one case may return")
    source_kb: int = Field(64, ge=1, description="size of the submission")


class Timing(Strict):
    """What a GPU runner times once a submission is accepted: `timing.py` has `timed(submission, size)`, which returns a
    function without arguments, and `baseline(size)`, which returns what that is compared with. They have a file of their
    own since a baseline computes the answer: it must not be where a submission is judged, as `driver.py` is."""

    what: Bilingual = Field(description="what is timed")
    against: Bilingual = Field(description="what it is compared with")
    sizes: dict[str, dict[str, int | str]] = Field(min_length=1, description="name -> parameters")


class ProblemToml(Strict):
    """The fields of problem.toml."""

    id: int = Field(ge=30, le=399)
    chapter: int = Field(ge=0)
    slug: str = Field(pattern=r"^[a-z0-9_]+$")
    title: Bilingual
    idea: Bilingual = Field(description="the one thing that the problem teaches, in a line")
    tags: BilingualTags
    difficulty: Literal["easy", "medium", "hard"]
    kind: Literal["function", "graft", "file"]
    entry: str = Field("", description="the function that is called; for a graft the last part of target")
    target: str | None = Field(
        None, description="minisgl/a/b.py:Class.method, for a graft; minisgl/a/b.py, for a file"
    )
    signature: str = Field(description="the entry with its parameters, as the statement gives it")
    outputs: list[str] = Field(default_factory=list, description="names of the returned values, in order")
    withhold: list[str] = Field(default_factory=list)
    needs: list[Literal["tree", "fakes"]] = Field(default_factory=list)
    runs: list[Literal["browser", "cpu", "gpu"]]
    kernels: Literal["strict", "faithful"] = "strict"
    random_cases: int = Field(4, ge=0, le=40)
    exhaustive: bool = False
    picture: str | None = None
    requests: dict[str, str] = Field(
        default_factory=dict, description="how an output's positions belong to requests: `judge.core.picture`"
    )
    limits: Limits = Limits()
    timing: Timing | None = None
    tolerance: dict[str, float] = Field(default_factory=dict)
    nan_ok: list[str] = Field(default_factory=list)
    signed_zero: list[str] = Field(default_factory=list)


class WrongToml(Strict):
    verdict: Literal["wrong_answer", "runtime_error", "time_limit"] = "wrong_answer"
    diagnosis: Bilingual
    section: str = Field(
        pattern=r"^(ch\d\d|f)#[\w-]+$", description="chapter (or track F) and anchor of its text"
    )


@dataclass(frozen=True)
class WrongSolution:
    """A known mistake: a program that makes it, and what to tell who makes it too."""

    name: str
    source: str
    verdict: str
    diagnosis: Bilingual
    section: str


@dataclass(frozen=True)
class PublicCase:
    """A public case with its answer, in the display form of `judge.core.values`."""

    name: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    note: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Package:
    """A problem package. `version` is the hash of all its files: what a submission was judged by."""

    folder: Path
    info: ProblemToml
    public: tuple[PublicCase, ...]
    wrong: Mapping[str, WrongSolution]
    files: Mapping[str, bytes] = field(repr=False)

    id = property(lambda self: self.info.id)
    slug = property(lambda self: self.info.slug)
    chapter = property(lambda self: self.info.chapter)
    title = property(lambda self: self.info.title)
    tags = property(lambda self: self.info.tags)
    difficulty = property(lambda self: self.info.difficulty)
    kind = property(lambda self: self.info.kind)
    target = property(lambda self: self.info.target)
    limits = property(lambda self: self.info.limits)
    picture = property(lambda self: self.info.picture)

    @property
    def entry(self) -> str:
        """The function that a submission must define."""
        return self.info.entry or (self.info.target or "").rpartition(":")[2].rpartition(".")[2]

    @property
    def has_stub(self) -> bool:
        """Whether the problem is about calls: what the submission calls is on the checker's side, in stub.py."""
        return "stub.py" in self.files

    @property
    def parameters(self) -> list[str]:
        """Names of the entry's parameters, from `signature`."""
        inner = self.info.signature.partition("(")[2].rpartition(")")[0]
        return [p.split(":")[0].split("=")[0].strip() for p in inner.split(",") if p.strip()]

    @cached_property
    def version(self) -> str:
        digest = hashlib.sha256()
        for name, data in sorted(self.files.items()):
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
        return digest.hexdigest()[:16]

    def text(self, name: str) -> str:
        """A file of the package as text. Raises PackageError if it isn't there or is no UTF-8."""
        if name not in self.files:
            raise PackageError(self.folder / name, "is missing")
        try:
            return self.files[name].decode("utf-8")
        except UnicodeDecodeError as error:
            raise PackageError(self.folder / name, f"is not UTF-8 (byte {error.start})") from None

    @property
    def starter(self) -> str:
        return self.text("starter.py")

    @property
    def solution(self) -> str:
        return self.text("solution.py")

    def statement(self, lang: str) -> str:
        """The statement as markdown, `{{case NAME}}` replaced by that public case, so that examples are true."""
        name = f"statement.{lang}.md"
        cases = {c.name: c for c in self.public}

        def render(match: re.Match[str]) -> str:
            if match[1] not in cases:
                line = text[: match.start()].count("\n") + 1
                raise PackageError(self.folder / name, f"there is no public case {match[1]!r}", line)
            return show_case(cases[match[1]], lang)

        text = self.text(name)
        return CASE_REFERENCE.sub(render, text)


def show_case(case: PublicCase, lang: str) -> str:
    """A public case as a fenced block: inputs, an arrow, the answer."""
    arrow = {"zh": "返回", "en": "returns"}[lang]
    width = max(len(k) for k in (*case.inputs, *case.expected))
    lines = [f"{k:<{width}} = {show_value(v)}" for k, v in case.inputs.items()]
    lines.append(f"→ {arrow}")
    lines += [f"{k:<{width}} = {show_value(v)}" for k, v in case.expected.items()]
    return "```text\n" + "\n".join(lines) + "\n```"


def show_value(value: Any) -> str:
    """A display-form value as one would write it in Python; a tensor with dtype and, unless it can be seen, shape."""
    if isinstance(value, dict) and value.keys() == {"tensor"}:
        return _show_tensor(**value["tensor"])
    if isinstance(value, dict) and value.keys() == {"float"}:
        return str(value["float"])  # nan, inf or -inf
    if isinstance(value, dict):
        items = value["dict"] if value.keys() == {"dict"} else value.items()
        return "{" + ", ".join(f"{show_value(k)}: {show_value(v)}" for k, v in items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(show_value(v) for v in value) + "]"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    return json.dumps(value, ensure_ascii=False)


def _show_tensor(dtype: str, shape: list[int], data: Any) -> str:
    if len(shape) == 2:
        rows = ",\n     ".join(show_value(row) for row in data)
        return f"{dtype} {tuple(shape)}\n    [{rows}]"
    if len(shape) > 2 and 0 in shape:  # its brackets don't say how large the other dimensions are
        return f"{dtype} {tuple(shape)} {show_value(data)}"
    return f"{dtype} {show_value(data)}"


def load_package(folder: Path, *, draft: bool = False) -> Package:
    """Read one package. Raises PackageError. A draft has no public.json yet, so its statements cannot show cases."""
    folder = folder.resolve()
    if not (folder / "problem.toml").is_file():
        raise PackageError(folder, "is no problem package: it has no problem.toml")
    files = {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and "__pycache__" not in p.parts and not p.name.startswith(".")
    }
    info = _parse(ProblemToml, folder / "problem.toml", files["problem.toml"])
    public = () if draft else _public(folder, files)
    try:
        get_chapter(info.chapter)
    except StepError as error:
        raise PackageError(
            folder / "problem.toml", f"chapter: {error}", _line_of(files["problem.toml"], ("chapter",))
        ) from None
    package = Package(folder, info, public, _wrong(folder, files), files)
    for name in ("starter.py", "solution.py", "cases.py", *(f"statement.{lang}.md" for lang in LANGS)):
        package.text(name)
    if info.kind == "graft" and not (info.target and ":" in info.target):
        raise PackageError(folder / "problem.toml", "a graft needs target = 'minisgl/a/b.py:Class.method'")
    if info.kind == "file" and not (info.target and info.target.endswith(".py") and "tree" in info.needs):
        raise PackageError(
            folder / "problem.toml", "a file problem needs target = 'minisgl/a/b.py' and needs = ['tree']"
        )
    if not package.entry:
        raise PackageError(folder / "problem.toml", "entry is missing")
    if info.timing is not None and ("timing.py" not in files or "gpu" not in info.runs):
        raise PackageError(
            folder / "problem.toml", "timing needs runs = [..., 'gpu'] and a timing.py that times"
        )
    if info.kind == "file" and "driver.py" not in files:
        raise PackageError(
            folder / "driver.py", "is missing: a file problem says there what of the file it calls"
        )
    if package.has_stub and "driver.py" not in files:
        raise PackageError(
            folder / "driver.py", "is missing: it gives the submission what stub.py stands behind"
        )
    for lang in LANGS if not draft else ():
        package.statement(lang)
    return package


def _parse(model: type[Any], path: Path, data: bytes) -> Any:
    try:
        return model.model_validate(tomllib.loads(data.decode("utf-8")))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        raise PackageError(path, f"is no TOML: {error}", int(found[1]) if found else None) from None
    except UnicodeDecodeError as error:
        raise PackageError(path, f"is not UTF-8 (byte {error.start})") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise PackageError(path, f"{where}: {first['msg']}", _line_of(data, first["loc"])) from None


def _line_of(data: bytes, loc: tuple[int | str, ...]) -> int | None:
    key = str(loc[-1]) if loc else ""
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if line.split("=")[0].strip().strip("[]").split(".")[-1] == key:
            return number
    return None


def _public(folder: Path, files: Mapping[str, bytes]) -> tuple[PublicCase, ...]:
    path = folder / "public.json"
    if "public.json" not in files:
        raise PackageError(path, "is missing: write it with `python tools/problems.py freeze`")
    try:
        items = json.loads(files["public.json"])
        return tuple(PublicCase(i["name"], i["inputs"], i["expected"], i.get("note")) for i in items)
    except json.JSONDecodeError as error:
        raise PackageError(path, f"is no JSON: {error.msg}", error.lineno) from None
    except (KeyError, TypeError) as error:
        raise PackageError(path, f"a case lacks {error}") from None


def _wrong(folder: Path, files: Mapping[str, bytes]) -> dict[str, WrongSolution]:
    path = folder / "wrong" / "wrong.toml"
    sources = {n.removeprefix("wrong/").removesuffix(".py"): d for n, d in files.items() if _is_wrong(n)}
    if "wrong/wrong.toml" not in files:
        if sources:
            raise PackageError(path, "is missing: it names the diagnosis of each wrong solution")
        return {}
    try:
        table = tomllib.loads(files["wrong/wrong.toml"].decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PackageError(path, f"is no TOML: {error}") from None
    for name in sources.keys() ^ table.keys():
        what = "has no program wrong/NAME.py" if name in table else "is missing in it"
        raise PackageError(path, f"{name} {what}")
    result = {}
    for name, entry in table.items():
        try:
            info = WrongToml.model_validate(entry)
        except ValidationError as error:
            first = error.errors()[0]
            raise PackageError(path, f"{name}.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        result[name] = WrongSolution(
            name, sources[name].decode("utf-8"), info.verdict, info.diagnosis, info.section
        )
    return result


def _is_wrong(name: str) -> bool:
    return name.startswith("wrong/") and name.endswith(".py")


@dataclass(frozen=True)
class Collection:
    """The packages of a folder by id, in order of id, and why the others were refused."""

    packages: dict[int, Package]
    refused: tuple[PackageError, ...]


def survey(folder: Path = PROBLEMS) -> Collection:
    """All packages. One that is broken, or has another's id, is left out and takes nothing else with it."""
    packages: dict[int, Package] = {}
    refused = []
    for path in sorted(p.parent for p in folder.glob("*/problem.toml")):
        try:
            package = load_package(path)
            if package.id in packages:
                other = packages[package.id].folder.name
                raise PackageError(path / "problem.toml", f"id {package.id} is also that of {other}")
        except PackageError as error:
            refused.append(error)
        else:
            packages[package.id] = package
    return Collection(dict(sorted(packages.items())), tuple(refused))


def load_packages(folder: Path = PROBLEMS) -> dict[int, Package]:
    """All packages by id, in order of id. Raises PackageError for the first that is refused."""
    found = survey(folder)
    if found.refused:
        raise found.refused[0]
    return found.packages


def find_package(number: int, folder: Path = PROBLEMS) -> Package | None:
    """The package with this id, None if there is none. Raises PackageError if it is broken. Others are not looked into
    where the folder's name begins with the id."""
    named = sorted(p for p in folder.glob(f"{number}_*") if (p / "problem.toml").is_file())
    if len(named) == 1:
        package = load_package(named[0])
        if package.id == number:
            return package
    found = survey(folder)
    for error in found.refused if number not in found.packages else ():
        if any(error.file.is_relative_to(path) for path in named):
            raise error
    return found.packages.get(number)
