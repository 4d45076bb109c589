#!/usr/bin/env python3
"""Practise in a terminal: the same problems, judge and verdicts as on the site, without account or server.

    python practice/judge.py start 200        write practice/workspace/200.py and show the problem
    python practice/judge.py 200              judge practice/workspace/200.py

Exit status: 0 accepted (or done), 1 not accepted, 2 wrong usage, 3 the judge itself failed.
"""

from __future__ import annotations

import json
import locale
import os
import secrets
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(1, str(ROOT / "fakes"))

try:
    import click
    from rich.console import Console
except ImportError:
    venv = ROOT / ".venv" / "bin" / "python"
    if (
        venv.exists()
        and Path(sys.executable).resolve() != venv.resolve()
        and not os.environ.get("JUDGE_REEXEC")
    ):
        os.environ["JUDGE_REEXEC"] = "1"
        os.execv(venv, [str(venv), *sys.argv])
    sys.exit("The packages of this project are missing: run `make setup` once (it makes .venv).")

from judge import local
from judge.core.picture import pictures
from judge.core.verdict import Mismatch
from judge.core.wording import say, say_diagnosis, say_mismatch, say_status
from judge.packages import Package, PackageError, find_package, load_package, show_value, survey
from tools.steps_track import find_section

WORKSPACE = ROOT / "practice" / "workspace"
ACCEPTED, NOT_ACCEPTED, USAGE, SYSTEM = 0, 1, 2, 3

TEXTS = {
    "passed": {"zh": "{passed}/{total} 个用例通过", "en": "{passed} of {total} cases passed"},
    "facts": {
        "zh": "CPU {time_ms} 毫秒 · 隔离级别 {tier} · {kernels}",
        "en": "{time_ms} ms CPU · tier {tier} · {kernels}",
    },
    "hidden": {"zh": "隐藏用例", "en": "hidden case"},
    "diagnosis": {"zh": "诊断", "en": "Diagnosis"},
    "counterexample": {"zh": "最小的反例", "en": "The smallest counterexample"},
    "read": {"zh": "读一读", "en": "Read"},
    "apart": {
        "zh": "下面的输入能把它们分开，各自的输出是：",
        "en": "This input tells them apart; they give:",
    },
    "inputs": {"zh": "输入", "en": "inputs"},
    "expected": {"zh": "应为", "en": "expected"},
    "got": {"zh": "你的输出", "en": "yours"},
    "printed": {"zh": "打印的内容", "en": "printed"},
    "run_only": {"zh": "只运行了公开用例", "en": "public cases only"},
    "seed": {
        "zh": "用同样的用例再判一次：--seed {seed}",
        "en": "judge with the same cases again: --seed {seed}",
    },
    "watching": {
        "zh": "正在看 {file}，保存就判题；Ctrl-C 结束。",
        "en": "Watching {file}: saved is judged. Ctrl-C ends.",
    },
    "written": {"zh": "已写好 {file}", "en": "Wrote {file}"},
    "kept": {"zh": "{file} 已经在那里，没有动它", "en": "{file} is there already and was left alone"},
    "next": {
        "zh": "写完后运行：python practice/judge.py {id}",
        "en": "When it is done: python practice/judge.py {id}",
    },
}


def default_lang() -> str:
    """zh if the terminal's locale says so."""
    setting = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    return "zh" if (setting or locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"


class Commands(click.Group):
    """`judge.py 200` means `judge.py test 200`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next((a for a in args if not a.startswith("-")), "")
        if first and first not in self.commands and (first.isdigit() or Path(first).is_dir()):
            args = ["test", *args]
        return super().parse_args(ctx, args)


lang_option = click.option("--lang", type=click.Choice(["zh", "en"]), default=default_lang, help="Language.")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Practise 手写 mini-sglang in a terminal. `judge.py 200` judges practice/workspace/200.py."""


def find(which: str) -> Package:
    """The problem with this id or in this folder. Raises click.UsageError."""
    try:
        if not which.isdigit():
            return load_package(Path(which))
        package = find_package(int(which))
    except PackageError as error:
        raise click.UsageError(str(error)) from None
    if package is None:
        raise click.UsageError(f"there is no problem {which}; `python practice/judge.py list` shows all")
    return package


def shown(path: Path) -> str:
    """A path as short as it can be."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


@main.command()
@click.argument("which", metavar="ID|FOLDER")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--run", "run_only", is_flag=True, help="Public cases only.")
@click.option("--watch", is_flag=True, help="Judge again whenever the file is saved.")
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON (judge/verdict.schema.json).")
@click.option("--seed", type=click.IntRange(0, (1 << 128) - 1), help="Draw the random cases of this seed.")
@click.option("--kernels", type=click.Choice(["fake", "real", "auto"]), default="auto", show_default=True)
@click.option("--case", "case_name", metavar="NAME", help="Show a public case: inputs, and both outputs.")
@lang_option
def test(
    which: str,
    file: Path | None,
    run_only: bool,
    watch: bool,
    as_json: bool,
    seed: int | None,
    kernels: str,
    case_name: str | None,
    lang: str,
) -> None:
    """Judge a file: practice/workspace/ID.py unless one is named."""
    package = find(which)
    if kernels == "real":
        raise click.UsageError(
            "--kernels real needs an NVIDIA GPU with flashinfer and sgl_kernel, and a judge for it; "
            "`python practice/judge.py doctor` says what there is here"
        )
    path = file or WORKSPACE / f"{package.id}.py"
    if not path.is_file():
        raise click.UsageError(
            f"{shown(path)} is not there; `python practice/judge.py start {package.id}` writes it"
        )
    if case_name is not None and case_name not in {c.name for c in package.public}:
        names = ", ".join(c.name for c in package.public)
        raise click.UsageError(f"there is no public case {case_name}; there are: {names}")
    console = Console(stderr=as_json, highlight=False)

    def once() -> int:
        nonlocal package
        package = find(which)  # the package may have been edited too
        drawn = secrets.randbits(128) if seed is None else seed
        return judge_once(
            console, package, path, drawn, run_only or case_name is not None, as_json, case_name, lang
        )

    if not watch:
        sys.exit(once())
    import watchfiles

    console.print(TEXTS["watching"][lang].format(file=shown(path)), style="dim")
    # The folder is watched, not the file: editors save by renaming a new file over the old one. What counts is the
    # file's own state, so that nothing saved before the watch had begun is missed.
    judged = None
    for _ in watchfiles.watch(
        path.resolve().parent, yield_on_timeout=True, rust_timeout=500, recursive=False, raise_interrupt=False
    ):
        state = file_state(path)
        if state is not None and state != judged:
            if judged is not None:
                console.rule(style="dim")
            judged = state
            once()


def file_state(path: Path) -> tuple[int, int, int] | None:
    """Something that changes whenever a file is saved; None while it is not there."""
    try:
        info = path.stat()
    except FileNotFoundError:
        return None
    return info.st_ino, info.st_mtime_ns, info.st_size


def judge_once(
    console: Console,
    package: Package,
    path: Path,
    seed: int,
    public_only: bool,
    as_json: bool,
    case_name: str | None,
    lang: str,
) -> int:
    """One judgement, printed. Returns the exit status."""
    verdict: dict[str, Any] = {}
    try:
        for event in local.request(
            package.folder, path.read_bytes(), seed.to_bytes(16, "big"), "public" if public_only else "all"
        ):
            if event["type"] == "verdict":
                verdict = event["verdict"]
    except (local.LocalError, OSError) as error:
        Console(stderr=True).print(str(error), style="red", markup=False)
        return SYSTEM
    if as_json:
        click.echo(json.dumps(verdict, ensure_ascii=False))
    elif case_name is not None:
        print_case(console, package, verdict, case_name, lang)
    else:
        print_verdict(console, package, verdict, seed, public_only, lang)
    if verdict["status"] == "system_error":
        return SYSTEM
    return ACCEPTED if verdict["status"] == "accepted" else NOT_ACCEPTED


def print_verdict(
    console: Console, package: Package, verdict: dict[str, Any], seed: int, public_only: bool, lang: str
) -> None:
    def text(key: str, **params: Any) -> str:
        return TEXTS[key][lang].format(**params)

    accepted = verdict["status"] == "accepted"
    mark, style = ("✓", "bold green") if accepted else ("✗", "bold red")
    console.print(f"{mark} {say_status(verdict['status'], lang)}", style=style, end="  ")
    console.print(text("passed", **verdict), end="  ")
    console.print(text("facts", **verdict) + (" · " + text("run_only") if public_only else ""), style="dim")
    if verdict["message"]:
        console.print(say(verdict["message"], lang), markup=False)
    print_failures(console, verdict, lang)
    if verdict["diagnosis"]:
        console.print(f"\n{text('diagnosis')}", style="bold")
        for entry in verdict["diagnosis"]:
            console.print(f"  {say_diagnosis(entry, lang)}", markup=False)
            if entry.get("apart"):
                print_apart(console, entry["apart"], lang)
            if entry.get("section"):
                print_section(console, entry["section"], lang)
    if verdict["counterexample"]:
        print_counterexample(console, package, verdict["counterexample"], lang)
    if not accepted and not public_only:
        console.print("\n" + text("seed", seed=seed), style="dim")


def print_section(console: Console, section: str, lang: str) -> None:
    """Where to read on: the section's heading, and its file if the text has been written."""
    place = find_section(section)
    if place is None:
        return
    text = place.folder / f"text.{lang}.md"
    where = f"{text.relative_to(ROOT)} #{place.anchor}" if text.is_file() else place.title[lang]
    console.print(f"  → {TEXTS['read'][lang]}: {place.heading[lang]} ({where})", style="dim", markup=False)


def print_apart(console: Console, apart: dict[str, Any], lang: str) -> None:
    """An input on which mistakes differ that this run could not tell apart."""
    console.print(f"  {TEXTS['apart'][lang]}", markup=False)
    print_values(console, TEXTS["inputs"][lang], apart["inputs"])
    for number, given in apart["given"].items():
        print_values(console, f"({number})", given)


def print_failures(console: Console, verdict: dict[str, Any], lang: str) -> None:
    """Failing cases: public ones with all that is wrong, hidden ones grouped by what may be told."""
    hidden: dict[str, int] = {}
    brief = False
    for case in verdict["cases"]:
        if case["status"] in ("accepted", "not_run") or case["message"] == verdict["message"]:
            continue
        said = say(case["message"], lang) if case["message"] else say_status(case["status"], lang)
        if case["group"] == "hidden":
            hidden[said] = hidden.get(said, 0) + 1
            continue
        console.print(f"  ✗ {case['name']}: ", style="red", end="", markup=False)
        if brief and case["mismatches"]:  # the first case says it all; the others mostly say it again
            said = say_mismatch(Mismatch(**case["mismatches"][0]), lang)
        brief = True
        console.print(said, markup=False)
        if case["output"].strip():
            console.print(
                f"    {TEXTS['printed'][lang]}: {case['output'].strip()[:500]}", style="dim", markup=False
            )
    for said, count in hidden.items():
        times = f" ×{count}" if count > 1 else ""
        console.print(f"  ✗ {TEXTS['hidden'][lang]}{times}: ", style="red", end="", markup=False)
        console.print(said, markup=False)


def print_counterexample(console: Console, package: Package, example: dict[str, Any], lang: str) -> None:
    console.print(f"\n{TEXTS['counterexample'][lang]} ({example['case']})", style="bold", markup=False)
    print_values(console, TEXTS["inputs"][lang], example["inputs"])
    print_both(console, example["expected"], example["got"], lang)
    if example["message"] and not example["mismatches"]:
        console.print(f"  {say(example['message'], lang)}", style="red", markup=False)
    for mismatch in example["mismatches"]:
        text = say_mismatch(Mismatch(**mismatch), lang)
        console.print(f"  {text}", style="red", markup=False)
    print_pictures(console, package, example["expected"], example["got"], lang)


def print_pictures(
    console: Console, package: Package, expected: Any, got: dict[str, Any] | None, lang: str
) -> None:
    """Where outputs differ: which request, which position."""
    for drawn in pictures(expected, got, package.info.requests, lang):
        console.print(
            "\n" + "\n".join(f"    {line}" for line in drawn.splitlines()), markup=False, highlight=False
        )


def print_values(console: Console, title: str, values: dict[str, Any]) -> None:
    console.print(f"  {title}", style="dim")
    width = max((len(k) for k in values), default=0)
    for name, value in values.items():
        console.print(f"    {name:<{width}} = {show_value(value)}".replace("\n", "\n    "), markup=False)


def print_both(console: Console, expected: dict[str, Any], got: dict[str, Any] | None, lang: str) -> None:
    """Expected and own outputs, field by field; fields that agree once."""
    got = got or {}
    width = max(len(k) for k in {**expected, **got})
    for name in {**expected, **got}:
        want, have = expected.get(name), got.get(name)
        if want == have:
            console.print(f"    {name:<{width}} = {show_value(want)}", style="green", markup=False)
            continue
        console.print(f"    {name:<{width}}   {TEXTS['expected'][lang]} {show_value(want)}", markup=False)
        if name in got:
            console.print(
                f"    {'':<{width}}   {TEXTS['got'][lang]} {show_value(have)}", style="red", markup=False
            )


def print_case(console: Console, package: Package, verdict: dict[str, Any], name: str, lang: str) -> None:
    case = next(c for c in package.public if c.name == name)
    result = next(c for c in verdict["cases"] if c["name"] == name)
    console.print(f"{name}: {say_status(result['status'], lang)}", style="bold")
    if case.note:
        console.print(case.note[lang], style="dim", markup=False)
    print_values(console, TEXTS["inputs"][lang], dict(case.inputs))
    print_both(console, dict(case.expected), result["got"], lang)
    if result["mismatches"]:
        print_pictures(console, package, dict(case.expected), result["got"], lang)
    for message in (result["message"], verdict["message"]):
        if message and message["code"] != "mismatches":
            console.print(say(message, lang), style="red", markup=False)
    if result["output"].strip():
        console.print(f"{TEXTS['printed'][lang]}: {result['output'].strip()}", style="dim", markup=False)


@main.command("list")
@lang_option
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_(lang: str, as_json: bool) -> None:
    """All problems; • marks those with a file in the workspace."""
    found = survey()
    for error in found.refused:
        click.echo(f"refused: {error}", err=True)
    packages = found.packages.values()
    if as_json:
        rows = [
            {"id": p.id, "chapter": p.chapter, "title": {"zh": p.title.zh, "en": p.title.en}}
            for p in packages
        ]
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for package in packages:
        mark = "•" if (WORKSPACE / f"{package.id}.py").exists() else " "
        click.echo(
            f"{mark} {package.id:>3}  ch{package.chapter:02}  {package.difficulty:<6}  {package.title[lang]}"
        )


@main.command()
@click.argument("which", metavar="ID")
@lang_option
def start(which: str, lang: str) -> None:
    """Write practice/workspace/ID.py from the starter and show the problem."""
    from rich.markdown import Markdown

    package = find(which)
    console = Console(highlight=False)
    path = WORKSPACE / f"{package.id}.py"
    text = package.statement(lang).replace("::: hint ", "**").replace(":::", "")
    console.print(f"{package.id}. {package.title[lang]}", style="bold")
    console.print(Markdown(text))
    if path.exists():
        console.print(TEXTS["kept"][lang].format(file=shown(path)), markup=False)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(package.starter, encoding="utf-8")
        console.print(TEXTS["written"][lang].format(file=shown(path)), markup=False)
    console.print(TEXTS["next"][lang].format(id=package.id), markup=False)


@main.command()
@click.argument("which", metavar="ID")
def solution(which: str) -> None:
    """Print the reference."""
    click.echo(find(which).solution, nl=False)


@main.command()
@click.argument("which", nargs=-1, metavar="[ID|FOLDER]...")
@click.option("--seeds", default=20, show_default=True)
def check(which: tuple[str, ...], seeds: int) -> None:
    """Prove problem packages (the same as tools/problems.py verify)."""
    from tools.problems import verify

    verify.callback(which, seeds, 2)  # type: ignore[misc]


@main.command()
def bench() -> None:
    """How long a verdict takes here, against a fresh interpreter that imports torch."""
    from tools.bench import judge as measure

    measure.callback()  # type: ignore[misc]


@main.command()
@lang_option
def doctor(lang: str) -> None:
    """What can be judged on this machine, and how to get the rest."""
    from judge.doctor import report

    console = Console(highlight=False)
    ok = True
    for line in report():
        style = {"ok": "green", "missing": "yellow", "broken": "red"}[line.state]
        mark = {"ok": "✓", "missing": "–", "broken": "✗"}[line.state]
        ok = ok and line.state != "broken"
        console.print(f"{mark} {line.name}: ", style=style, end="")
        console.print(line.text[lang], markup=False)
    sys.exit(ACCEPTED if ok else SYSTEM)


if __name__ == "__main__":
    main()
