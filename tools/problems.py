#!/usr/bin/env python3
"""Problem packages: list, look at, freeze, verify, begin a new one."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import click
from sqlalchemy.exc import OperationalError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "fakes"))

from judge.packages import PROBLEMS, Package, PackageError, find_package, load_package, load_packages, survey

if TYPE_CHECKING:
    from tools import problem_checks

SEEDS = 20


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Problem packages (see CONTRIBUTING.md for the format)."""


def find(which: str) -> Package:
    """The package with this id, or in this folder. Raises click.UsageError."""
    try:
        package = find_package(int(which)) if which.isdigit() else load_package(Path(which))
    except PackageError as error:
        raise click.UsageError(str(error)) from None
    if package is None:
        raise click.UsageError(f"there is no problem {which}; `python tools/problems.py list` shows all")
    return package


def draft(which: str) -> Package:
    """As `find`, for a package whose public.json may be missing: its folder's name begins with the id."""
    folders = sorted(PROBLEMS.glob(f"{which}_*")) if which.isdigit() else [Path(which)]
    try:
        return load_package(folders[0], draft=True) if folders else find(which)
    except PackageError as error:
        raise click.UsageError(str(error)) from None


@main.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
@click.option("--lang", type=click.Choice(["zh", "en"]), default="en", show_default=True)
def list_(as_json: bool, lang: str) -> None:
    """All problems, by id."""
    packages = load_packages().values()
    if as_json:
        rows = [
            {
                "id": p.id,
                "slug": p.slug,
                "chapter": p.chapter,
                "title": {"zh": p.title["zh"], "en": p.title["en"]},
                "difficulty": p.difficulty,
                "kind": p.kind,
                "runs": p.info.runs,
                "wrong": len(p.wrong),
                "version": p.version,
            }
            for p in packages
        ]
        click.echo(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    for p in packages:
        click.echo(f"{p.id:>4}  ch{p.chapter:02}  {p.difficulty:<6}  {p.kind:<8}  {p.title[lang]}")


@main.command()
@click.argument("which", metavar="ID|FOLDER")
@click.option("--lang", type=click.Choice(["zh", "en"]), default="en", show_default=True)
def show(which: str, lang: str) -> None:
    """The statement of a problem, and the mistakes it knows."""
    package = find(which)
    click.echo(package.statement(lang))
    for wrong in package.wrong.values():
        click.echo(f"- {wrong.name} ({wrong.verdict}, {wrong.section}): {wrong.diagnosis[lang]}")


@main.command()
@click.argument("which", nargs=-1, metavar="[ID|FOLDER]...")
def freeze(which: tuple[str, ...]) -> None:
    """Write public.json from cases.py and the reference."""
    from judge.sandbox.client import Zygote
    from tools import problem_checks

    packages = [draft(w) for w in which] or list(load_packages().values())
    zygote = Zygote("reference")
    try:
        for package in packages:
            try:
                text = problem_checks.freeze(package, zygote)
            except PackageError as error:
                raise click.ClickException(str(error)) from None
            (package.folder / "public.json").write_text(text, encoding="utf-8")
            click.echo(f"{package.folder.name}/public.json: {len(json.loads(text))} cases")
    finally:
        zygote.close()


@main.command()
@click.argument("which", nargs=-1, metavar="[ID|FOLDER]...")
@click.option("--seeds", default=SEEDS, show_default=True, help="Sittings for each program.")
@click.option("--jobs", default=2, show_default=True, help="Problems at a time.")
def verify(which: tuple[str, ...], seeds: int, jobs: int) -> None:
    """Prove packages: the reference passes, every wrong solution is refused and named, nothing else gets in."""
    from judge.judge import Judge
    from tools import problem_checks

    packages = [find(w) for w in which] or list(load_packages().values())
    with Judge(children=jobs) as judge:

        def one(package: Package) -> problem_checks.Report:
            try:
                return problem_checks.verify(judge, package, seeds)
            except Exception as error:  # noqa: BLE001  of a package's own code: a complaint about that package
                return problem_checks.Report(package, [f"{type(error).__name__}: {error}"])

        with ThreadPoolExecutor(jobs) as pool:
            reports = []
            for report in pool.map(one, packages):
                reports.append(report)
                mark = "ok  " if report.ok else "FAIL"
                click.echo(
                    f"{mark} {report.package.id} {report.package.slug}: {report.cases} cases, {report.wrong} wrong "
                    f"solutions, {report.refused_by_fixed} refused by fixed cases, {report.diagnosed} named, "
                    f"{report.attacks} attacks, reference {report.slowest_ms} ms, {report.seconds:.1f} s"
                )
                for complaint in report.complaints:
                    click.echo(f"     {complaint}")
    wrong = sum(r.wrong for r in reports)
    click.echo(
        f"{len(reports)} problems, {wrong} wrong solutions: "
        f"{sum(r.refused_by_fixed for r in reports)} refused by fixed cases, "
        f"{sum(r.diagnosed for r in reports)} named as themselves; "
        f"slowest reference {max((r.slowest_ms for r in reports), default=0)} ms"
    )
    _keep(reports, seeds)
    if not all(r.ok for r in reports):
        sys.exit(1)


def _keep(reports: list[problem_checks.Report], seeds: int) -> None:
    """Write down what was found of the site's own packages, for the staff's page."""
    from judge import verified
    from judge.store.settings import StoreSettings

    found = [
        (
            r.package.id,
            verified.Found(version=r.package.version, seeds=seeds, complaints=r.complaints, at=time.time()),
        )
        for r in reports
        if r.package.folder.resolve().parent == PROBLEMS
    ]
    if not found:
        return
    try:
        verified.write(StoreSettings().data_dir, found)
    except (OSError, ValueError) as error:  # the proof stands; only the staff's page does not hear of it
        click.echo(f"the result was not kept for the staff's page: {error}", err=True)


@main.command()
@click.argument("number", type=int)
@click.argument("slug")
@click.option(
    "--kind", type=click.Choice(["function", "graft", "file"]), default="function", show_default=True
)
def new(number: int, slug: str, kind: str) -> None:
    """Begin a package: problems/NUMBER_SLUG with every file it needs."""
    from tools.problem_scaffold import write

    folder = PROBLEMS / f"{number}_{slug}"
    if folder.exists():
        raise click.UsageError(f"{folder} exists already")
    write(folder, number, slug, kind)
    click.echo(
        f"{folder}: fill in the files, then `python tools/problems.py freeze {folder}` and `verify {folder}`"
    )


@main.command()
def table() -> None:
    """Write problems/README.md, the table of all problems."""
    from tools import problem_table

    packages = load_packages()
    (PROBLEMS / "README.md").write_text(problem_table.table(packages.values()), encoding="utf-8")
    click.echo(f"problems/README.md: {len(packages)} problems")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def stats(as_json: bool) -> None:
    """What the database tells: attempts, who solves it and how fast, which mistakes are named."""
    from judge.store import Store
    from judge.store.settings import StoreSettings
    from judge.store.statistics import problem_stats

    store = Store(StoreSettings().url)
    try:
        with store.read() as session:
            found = problem_stats(session)
    except OperationalError as error:
        raise click.ClickException(f"{store.url} has no submissions to count: {error.orig}") from None
    finally:
        store.close()
    if as_json:
        click.echo(json.dumps([{**vars(s), "solve_rate": s.solve_rate} for s in found]))
        return
    titles = {p.id: p.title["en"] for p in survey().packages.values()}
    for s in found:
        took = f"{s.seconds / 60:.1f} min" if s.seconds is not None else "-"
        click.echo(
            f"{s.problem} {titles.get(s.problem, '(gone)')}: {s.submissions} submissions of {s.users} users, "
            f"{s.solvers} solved it ({s.solve_rate:.0%}), median {took}"
        )
        for name, count in s.mistakes.most_common():
            click.echo(f"     {count:5} {name}")
        if s.unnamed:
            click.echo(f"     {s.unnamed:5} wrong without a name")


if __name__ == "__main__":
    try:
        main()
    except PackageError as error:  # of a package that nobody asked for by name
        sys.exit(f"Error: {error}")
