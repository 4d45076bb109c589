#!/usr/bin/env python3
"""Practise in a terminal: the same problems, judge and verdicts as on the site, without account or server.

    python practice/judge.py start 200        write practice/workspace/200.py and show the problem
    python practice/judge.py 200              judge practice/workspace/200.py
    python practice/judge.py 200 --remote https://course.example.edu    have a site judge it

Exit status: 0 accepted (or done), 1 not accepted, 2 wrong usage (of a site: a wrong address or token, too), 3 no verdict:
the judge itself failed, the site gave no answer, or Ctrl+C ended the wait.
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
    venv = ROOT / ".venv"
    # By its prefix: its python is a link to the very interpreter that it was made with.
    if (venv / "bin" / "python").exists() and Path(sys.prefix).resolve() != venv.resolve():
        os.execv(venv / "bin" / "python", [str(venv / "bin" / "python"), *sys.argv])
    sys.exit("The packages of this project are missing: run `make setup` once (it makes .venv).")

from judge import local
from judge.packages import Package, PackageError, find_package, load_package, survey
from practice.printing import TEXTS, print_case, print_hint, print_statement, print_verdict
from practice.remote_options import chosen, remote_options

WORKSPACE = ROOT / "practice" / "workspace"
ACCEPTED, NOT_ACCEPTED, USAGE, SYSTEM = 0, 1, 2, 3


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


def wrong_usage(key: str, lang: str, **params: Any) -> click.UsageError:
    """The text of this key as an error that ends the command with status 2."""
    return click.UsageError(TEXTS[key][lang].format(**params))


def find(which: str, lang: str) -> Package:
    """The problem with this id or in this folder. Raises click.UsageError."""
    try:
        if not which.isdigit():
            return load_package(Path(which))
        package = find_package(int(which))
    except PackageError as error:
        raise click.UsageError(str(error)) from None
    if package is None:
        raise wrong_usage("no_problem", lang, id=which)
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
@remote_options
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
    **remote: Any,
) -> None:
    """Judge a file: practice/workspace/ID.py unless one is named."""
    here_only = {
        "--watch": watch,
        "--seed": seed is not None,
        "--case": case_name,
        "--kernels": kernels != "auto",
    }
    site = chosen(remote, here_only, lang)
    package = find(which, lang)
    if kernels == "real":
        raise wrong_usage("no_gpu", lang)
    path = file or WORKSPACE / f"{package.id}.py"
    if not path.is_file():
        raise wrong_usage("no_file" if file else "not_started", lang, file=shown(path), id=package.id)
    if case_name is not None and case_name not in {c.name for c in package.public}:
        names = ", ".join(c.name for c in package.public)
        raise wrong_usage("no_case", lang, name=case_name, names=names)
    console = Console(stderr=as_json, highlight=False)
    if site is not None:
        from practice.remote import judge_remote

        sys.exit(judge_remote(console, package, path, site, run_only, as_json, lang))

    def once() -> int:
        nonlocal package
        package = find(which, lang)  # the package may have been edited too
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
    package = find(which, lang)
    console = Console(highlight=False)
    path = WORKSPACE / f"{package.id}.py"
    print_statement(console, package, lang)
    if path.exists():
        console.print(TEXTS["kept"][lang].format(file=shown(path)), markup=False)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(package.starter, encoding="utf-8")
        console.print(TEXTS["written"][lang].format(file=shown(path)), markup=False)
    console.print(TEXTS["next"][lang].format(id=package.id), markup=False)


@main.command()
@click.argument("which", metavar="ID")
@click.argument("number", metavar="[N]", type=click.IntRange(min=1), default=1)
@lang_option
def hint(which: str, number: int, lang: str) -> None:
    """Show the N-th hint to a problem (the first, if N is left out)."""
    package = find(which, lang)
    if not print_hint(Console(highlight=False), package, number, lang):
        raise wrong_usage("no_hint", lang, id=package.id, number=number)


@main.command()
@click.argument("which", metavar="ID")
@lang_option
def solution(which: str, lang: str) -> None:
    """Print the reference."""
    click.echo(find(which, lang).solution, nl=False)


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
