"""A real site in processes of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_S = 90
TIMEOUT_MS = 60_000  # a busy machine; a test that waits for nothing fails sooner by its own assertion


@dataclass
class Site:
    """A running site: its start address, and its base. Where an administrator is there already, the two are one."""

    start: str

    @property
    def base(self) -> str:
        return self.start.partition("/enter")[0]


@contextmanager
def running_site(data: Path, only: str = "", **settings: str) -> Iterator[Site]:
    """A site over a data folder of its own, with these settings in its environment. `only`: "web", where nothing is judged.
    Skips, or in CI fails, where there is no Chromium to open it."""
    if not CHROMIUM.exists():
        reason = f"{CHROMIUM} is missing: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    env = {k: v for k, v in os.environ.items() if not k.startswith("COURSE_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "web.serve", "--port", "0", *(["--only", only] if only else [])],
        cwd=ROOT,
        env=env | {"COURSE_PREPARE_PROBLEMS": "1"} | settings | {"COURSE_DATA_DIR": str(data)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Site(_start_address(process))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def _start_address(process: subprocess.Popen[str]) -> str:
    """Read the output until it shows the address; go on reading, or the site would block on a full pipe."""
    lines: list[str] = []
    found = threading.Event()

    def read() -> None:
        for line in process.stdout:
            lines.append(line)
            if "Ctrl+C" in line:  # the last line of the announcement
                found.set()
        found.set()

    threading.Thread(target=read, daemon=True).start()
    assert found.wait(START_S), "".join(lines)
    addresses = re.findall(r"http://\S+", "".join(lines))
    assert addresses, "".join(lines)
    return next((address for address in addresses if "/enter?token=" in address), addresses[0])


@contextmanager
def chromium_running() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def fresh_pages(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages, each in a profile of its own. Errors of their scripts fail the test at the end."""
    contexts, errors = [], []

    def opened(lang: str = "en-US", **options: Any) -> Any:
        context = browser.new_context(locale=lang, **options)
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []
