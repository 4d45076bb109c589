"""The chapters of the course and their trees: `python tools/steps.py --help`.

Other parts import `load_chapters`, `tree_files` and `build` from here; none of them needs torch.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a script: its own folder is on the path, the repository is not
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import click

from tools.steps_build import build, stub_source
from tools.steps_check import Outcome, check, derive, main_output
from tools.steps_manifest import (
    LANGUAGES,
    ROOT,
    Chapter,
    StepError,
    chapters_of,
    get_chapter,
    load_chapters,
    tree_files,
    tree_sources,
)
from tools.steps_show import render_diff, render_list, render_tree, symbol_lines

CHECK_MODEL = "thin"

__all__ = [
    "Chapter",
    "StepError",
    "build",
    "get_chapter",
    "load_chapters",
    "stub_source",
    "symbol_lines",
    "tree_files",
    "tree_sources",
]


@click.group(help="The chapters of the course and their trees.", context_settings={"max_content_width": 100})
def main() -> None:
    return


_language = click.option(
    "--lang", type=click.Choice(LANGUAGES), default="zh", show_default=True, help="Language of the output."
)


@main.command("list")
@_language
def list_command(lang: str) -> None:
    """Print the chapters: number, title, files in the tree, files new in it."""
    click.echo(render_list(lang))


@main.command("tree")
@click.argument("number", type=int)
@_language
def tree_command(number: int, lang: str) -> None:
    """Print chapter NUMBER's tree."""
    click.echo(render_tree(number, lang))


@main.command("diff")
@click.argument("number", type=int)
@_language
def diff_command(number: int, lang: str) -> None:
    """Print what chapter NUMBER does to the tree before it."""
    click.echo(render_diff(number, lang))


@main.command("build")
@click.argument("number", type=int)
@click.argument("dest", type=click.Path(path_type=Path))
@click.option("--with", "replacements", multiple=True, metavar="PATH=FILE", help="FILE stands in for PATH.")
@click.option("--stub", "stubs", multiple=True, metavar="SYMBOL", help="Cut the body of PATH:NAME out.")
def build_command(number: int, dest: Path, replacements: tuple[str, ...], stubs: tuple[str, ...]) -> None:
    """Lay out chapter NUMBER's tree in the folder DEST."""
    replace = {}
    for item in replacements:
        path, equals, file = item.partition("=")
        if not equals:
            raise StepError(f"--with {item!r}: write PATH=FILE, such as minisgl/attention/fi.py=mine.py")
        try:
            replace[path] = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StepError(f"--with {item!r}: {file} cannot be read: {error}") from error
    build(number, dest, replace=replace, stub=stubs)
    click.echo(f"{len(tree_files(number))} files in {dest}")


@main.command("derive")
@click.argument("numbers", type=int, nargs=-1)
def derive_command(numbers: tuple[int, ...]) -> None:
    """Propose `early` for chapters NUMBERS (all, if none is given), and compare it with the manifest."""
    for number in numbers or chapters_of(ROOT):
        chapter = get_chapter(number)
        wanted = derive(number, _check_model)
        for path in wanted:
            note = "" if path in chapter.early else "  (not in chapter.toml)"
            click.echo(f"chapter {number}: early {path}{note}")
        for path in chapter.early:
            if path not in wanted:
                click.echo(f"chapter {number}: early {path} is in chapter.toml, but nothing needs it")
        if not wanted and not chapter.early:
            click.echo(f"chapter {number}: nothing early")


@main.command("check")
@click.argument("numbers", type=int, nargs=-1)
@click.option("-v", "--verbose", is_flag=True, help="Show the output of what passed, too.")
def check_command(numbers: tuple[int, ...], verbose: bool) -> None:
    """Build the trees of chapters NUMBERS (all, if none is given), and run their mains and tests on them."""

    def report(outcome: Outcome) -> None:
        click.echo(f"{'ok  ' if outcome.passed else 'FAIL'}  {outcome.what}")
        if outcome.detail and (verbose or not outcome.passed):
            click.echo("\n".join(f"        {line}" for line in outcome.detail.splitlines()))

    if not check(numbers or None, _check_model, report):
        sys.exit(1)


@main.command("output")
@click.argument("numbers", type=int, nargs=-1)
def output_command(numbers: tuple[int, ...]) -> None:
    """Run the mains of chapters NUMBERS (all, if none is given), and keep what they print for readers."""
    for number in numbers or chapters_of(ROOT):
        chapter = get_chapter(number)
        chapter.output.write_text(main_output(number, _check_model), encoding="utf-8")
        click.echo(f"{chapter.output.relative_to(ROOT)}: what {chapter.main} prints")


def _check_model() -> Path:
    from tools.models import cached

    return cached(CHECK_MODEL)


def run() -> None:
    """The command; a StepError is a sentence for the reader, not a traceback."""
    try:
        main()
    except StepError as error:
        click.echo(f"steps: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    run()
