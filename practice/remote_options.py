"""The options of judging on a site. What goes over the network (`remote`) is imported by those only who ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from practice.remote_texts import text

TOKEN_VARIABLE = "COURSE_API_TOKEN"


@dataclass(frozen=True)
class Options:
    """What was said about the site. `on_interrupt`: what Ctrl+C does to a submission that waits or runs."""

    url: str
    token_file: Path | None
    insecure: bool
    wait_s: int
    on_interrupt: str


def remote_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of judging on a site to a command, which gets them as keywords for `chosen`."""
    for option in (
        click.option(
            "--on-interrupt",
            type=click.Choice(["ask", "cancel", "leave"]),
            default="ask",
            help="What Ctrl+C does to the submission; where nobody can be asked, it is left.",
        ),
        click.option(
            "--wait",
            "wait_s",
            type=click.IntRange(1, 86_400),
            default=600,
            help="Seconds to wait for a verdict.",
            show_default=True,
        ),
        click.option("--insecure", is_flag=True, help="Allow http:// to a host other than this machine."),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path, dir_okay=False),
            help=f"File with your token for the site; else the variable {TOKEN_VARIABLE}.",
        ),
        click.option("--remote", "url", metavar="URL", help="Have the site at URL judge it."),
    ):
        command = option(command)
    return command


def chosen(given: dict[str, Any], others: dict[str, Any], lang: str) -> Options | None:
    """The options of `remote_options`; None without --remote. `others`: options that mean something here only. Raises
    click.UsageError for a combination that makes no sense."""
    if given["url"] is None:
        for name in ("token_file", "insecure"):
            if given[name]:
                option = "--" + name.replace("_", "-")
                raise click.UsageError(text("only_remote", lang, option=option))
        return None
    for option, value in others.items():
        if value:
            raise click.UsageError(text("not_remote", lang, option=option))
    return Options(**given)
