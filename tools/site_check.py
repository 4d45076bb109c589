#!/usr/bin/env python3
"""Submits to a running site as a browser would, and waits for verdicts: the reference of problem 200 must be accepted, a
wrong solution named. Prints the tier. For checking a stack from outside (`docker compose up`)."""

from __future__ import annotations

import html
import http.cookiejar
import re
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from judge.packages import load_packages

DEADLINE_S = 60.0


class Site:
    """A browser without scripts: cookies, one page at a time."""

    def __init__(self, base: str, token: str) -> None:
        self.base = base
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(cookies)
        self.get(f"/enter?token={token}")

    def get(self, path: str) -> str:
        request = urllib.request.Request(self.base + path, headers={"Accept-Language": "en"})
        with self.opener.open(request, timeout=20) as answer:
            text: str = answer.read().decode()
            return text

    def submit(self, problem: int, source: str) -> str:
        """Submit and wait; returns the page of the submission once its verdict is there."""
        page = self.get(f"/problems/{problem}")
        found = re.search(r'name="csrf_token" value="([^"]+)"', page)
        action = re.search(r'<form[^>]*action="(/problems/[^"]+)"', page)
        if found is None or action is None:
            raise click.ClickException(f"problem {problem}: the page has no form to submit with")
        data = urllib.parse.urlencode({"csrf_token": found[1], "source": source}).encode()
        request = urllib.request.Request(
            self.base + action[1], data, {"Origin": self.base, "Accept-Language": "en"}
        )
        with self.opener.open(request, timeout=20) as answer:
            place = urllib.parse.urlparse(answer.url).path
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            text = self.get(place)
            if "isolation tier" in text:
                return text
            time.sleep(0.3)
        raise click.ClickException(f"{place} had no verdict within {DEADLINE_S:.0f} s")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--base", default="http://127.0.0.1:8000", show_default=True)
@click.option("--token", required=True, help="The token of the start address.")
@click.option("--tier", help="The tier that verdicts must be of.")
def main(base: str, token: str, tier: str | None) -> None:
    """Submit to a running site and look at the verdicts."""
    package = load_packages()[200]
    site = Site(base, token)
    wrong = package.wrong["last_page_len_modulo"]
    for name, source, parts in (
        ("reference", package.solution, ("accepted", "20 of 20")),
        (wrong.name, wrong.source, ("wrong answer", wrong.diagnosis.en[:40])),
    ):
        page = site.submit(200, source)
        shown = re.search(r"isolation tier: (\w+)", page)
        found = shown[1] if shown else "none"
        text = html.unescape(page)
        for part in parts:
            if part not in text:
                raise click.ClickException(f"{name}: the verdict does not say {part!r}")
        if tier is not None and found != tier:
            raise click.ClickException(f"{name}: judged in tier {found}, not {tier}")
        click.echo(f"{name}: as expected, tier {found}")


if __name__ == "__main__":
    main()
