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
from tools.steps_manifest import Chapter, StepError, get_chapter, load_chapters, tree_files

__all__ = ["Chapter", "StepError", "build", "get_chapter", "load_chapters", "stub_source", "tree_files"]


@click.group(help="The chapters of the course and their trees.", context_settings={"max_content_width": 100})
def main() -> None:
    return


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


def run() -> None:
    """The command; a StepError is a sentence for the reader, not a traceback."""
    try:
        main()
    except StepError as error:
        click.echo(f"steps: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    run()
