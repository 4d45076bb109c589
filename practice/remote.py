"""`judge.py test ID --remote URL`: the same file judged by a site. Submits, follows, prints the verdict as the local judge's."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from judge.core.source import SourceError, decode_source
from judge.core.wording import say, say_status
from judge.packages import Package
from practice.printing import print_verdict
from practice.remote_options import TOKEN_VARIABLE, Options
from practice.remote_texts import text
from practice.site import SYSTEM, USAGE, Site, SiteError, check_address

FIRST_PAUSE_S, LONGEST_PAUSE_S, GROWTH = 0.1, 2.0, 1.4


def judge_remote(
    console: Console,
    package: Package,
    path: Path,
    options: Options,
    public_only: bool,
    as_json: bool,
    lang: str,
) -> int:
    """One judgement by the site, printed; everything else goes to stderr. Returns the exit status."""
    notes = Console(stderr=True, highlight=False)
    try:
        site = Site(
            check_address(options.url, options.insecure, lang), find_token(options, notes, lang), lang
        )
        source = read_source(path, package, lang)
        number = submit(site, package, source, public_only, notes, lang)
    except SiteError as error:
        notes.print(str(error), style="red", markup=False)
        return error.code
    try:
        found = follow(site, number, options.wait_s, notes, lang)
    except SiteError as error:
        notes.print(str(error), style="red", markup=False)
        return error.code
    except KeyboardInterrupt:
        notes.print(interrupted(site, number, options.on_interrupt, lang), markup=False)
        return SYSTEM
    return show(console, notes, package, site, found, public_only, as_json, lang)


def find_token(options: Options, notes: Console, lang: str) -> str:
    """The token of the file, else of the variable. Never an argument: others see those in the list of processes."""
    if options.token_file is None:
        token, where = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    else:
        where = str(options.token_file)
        try:
            token = options.token_file.read_text("utf-8")
            mode = options.token_file.stat().st_mode
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise SiteError(text("no_token_file", lang, file=where, reason=reason), USAGE) from None
        if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
            notes.print(text("open_file", lang, file=where), style="dim", markup=False)
    token = token.strip()
    if not token:
        raise SiteError(text("no_token", lang), USAGE)
    if not token.isascii() or not token.isprintable() or " " in token or len(token) > 500:
        raise SiteError(text("bad_token", lang, where=where), USAGE)
    return token


def read_source(path: Path, package: Package, lang: str) -> str:
    """The file as the text that JSON can carry. What is wrong with it otherwise, the verdict says."""
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        try:
            decode_source(raw, max_bytes=len(raw))
        except SourceError as error:
            raise SiteError(say(error.message.to_json(), lang), USAGE) from None
        raise


def submit(site: Site, package: Package, source: str, public_only: bool, notes: Console, lang: str) -> int:
    """Hand it in; the number of the submission. Says if the site has another version of the problem. Raises SiteError."""
    try:
        versions = {p["id"]: p["version"] for p in site.get("/problems")["problems"]}
    except (KeyError, TypeError):
        raise SiteError(text("no_api", lang, url=site.address), USAGE) from None
    version = versions.get(package.id)
    if version is None:
        raise SiteError(text("not_there", lang, id=package.id), USAGE)
    if version != package.version:
        note = text("other_version", lang, id=package.id, remote=version, local=package.version)
        notes.print(note, style="yellow", markup=False)
    try:
        made = site.post(
            "/submissions", {"problem": package.id, "source": source, "public_only": public_only}
        )
        number = int(made["id"])
    except SiteError as error:
        if not error.unsure:
            raise
        raise SiteError(f"{error}\n{text('unsure', lang, url=site.address)}", SYSTEM) from None
    except KeyboardInterrupt:
        raise SiteError(text("unsure", lang, url=site.address), SYSTEM) from None
    except (KeyError, TypeError, ValueError):
        raise SiteError(text("no_api", lang, url=site.address), USAGE) from None
    notes.print(text("sent", lang, number=number, url=site.address), style="dim", markup=False)
    return number


def follow(site: Site, number: int, wait_s: float, notes: Console, lang: str) -> dict[str, Any]:
    """Ask again and again, ever more rarely, until it has ended. Raises SiteError: it lasts too long, or the site refuses;
    no answer now and then is waited out."""
    ends = time.monotonic() + wait_s
    pause = FIRST_PAUSE_S
    with notes.status("…") if notes.is_terminal else nullcontext() as status:
        while True:
            asked_again_s = 0.0
            try:
                found = site.get(f"/submissions/{number}")
                if found.get("final"):
                    return found
                if status is not None:
                    status.update(progress(found, lang))
            except SiteError as error:
                if error.again_s is None or time.monotonic() >= ends:
                    raise
                asked_again_s = error.again_s
            if time.monotonic() >= ends:
                raise SiteError(
                    text("no_wait", lang, seconds=round(wait_s), url=site.address, number=number), SYSTEM
                )
            time.sleep(min(max(pause, asked_again_s), max(0.0, ends - time.monotonic())))
            pause = min(pause * GROWTH, LONGEST_PAUSE_S)


def progress(found: dict[str, Any], lang: str) -> str:
    if found.get("status") == "queued":
        return text("queued", lang, ahead=found.get("ahead"))
    return text("running", lang, done=len(found.get("cases") or []), total=found.get("total") or "?")


def interrupted(site: Site, number: int, wish: str, lang: str) -> str:
    """After Ctrl+C: cancel the submission or leave it, as was said or is said now. Returns which of the two it was."""
    if wish == "ask" and sys.stdin.isatty():
        try:
            wish = (
                "cancel"
                if click.confirm("\n" + text("ask_cancel", lang, number=number), err=True)
                else "leave"
            )
        except click.Abort:  # Ctrl+C once more
            wish = "leave"
    if wish != "cancel":
        return text("left", lang, number=number, url=site.address)
    try:
        site.post(f"/submissions/{number}/cancel")
    except SiteError as error:
        return text("ended", lang, number=number, reason=error)
    return text("cancelled", lang, number=number)


def show(
    console: Console,
    notes: Console,
    package: Package,
    site: Site,
    found: dict[str, Any],
    public_only: bool,
    as_json: bool,
    lang: str,
) -> int:
    """The verdict as the local judge prints it. Returns the exit status."""
    verdict = found.get("verdict")
    if not isinstance(verdict, dict):  # cancelled meanwhile, on a page
        notes.print(say_status(found["status"], lang), style="red", markup=False)
        return 1
    if as_json:
        click.echo(json.dumps(verdict, ensure_ascii=False))
    else:
        try:
            print_verdict(console, package, verdict, None, public_only, lang)
        except (KeyError, TypeError, ValueError, AttributeError):
            unknown = text("unknown_verdict", lang, url=site.address, number=found.get("id"))
            notes.print(unknown, style="red", markup=False)
            return SYSTEM
    if verdict["status"] == "system_error":
        return SYSTEM
    return 0 if verdict["status"] == "accepted" else 1
