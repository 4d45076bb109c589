#!/usr/bin/env python3
"""A class in the last minute before its deadline, against a site of its own on 127.0.0.1: `python tools/load.py`.

Starts `web.serve` with accounts over a fresh SQLite file, has LEARNERS sign in, then submit at random moments of SECONDS
while they look at pages and follow their verdicts; then one user floods the queue and another submits. Prints how long
pages took, how many submissions were lost (none may be), and how long the other one waited.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import click
import httpx2

PROBLEM = 200
START_S, DRAIN_S = 120.0, 300.0
FOLLOW_S = 1.0
FLOOD = 200


@dataclass
class Measured:
    """Milliseconds by what was asked, and answers that were no success. Safe to use from threads."""

    times: dict[str, list[float]] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, what: str, ms: float, status: int) -> None:
        with self.lock:
            self.times.setdefault(what, []).append(ms)
            if status >= 400:
                self.faults[f"{what}: {status}"] += 1


@dataclass
class Learner:
    """Somebody's browser. `number`: of the submission, once it was taken."""

    base: str
    login: str
    password: str
    measured: Measured
    client: httpx2.Client = field(default_factory=lambda: httpx2.Client(timeout=60.0, trust_env=False))
    token: str = ""
    number: int = 0

    def ask(
        self, what: str, method: str, path: str, data: dict[str, str] | None = None, as_json: bool = False
    ) -> httpx2.Response:
        headers = {"Origin": self.base, "Accept": "application/json" if as_json else "text/html"}
        start = time.perf_counter()
        answer = self.client.request(method, self.base + path, headers=headers, data=data)
        self.measured.add(what, (time.perf_counter() - start) * 1000, answer.status_code)
        return answer

    def sign_in(self) -> None:
        self._find_token(self.ask("sign-in page", "GET", "/login"))
        data = {"csrf_token": self.token, "login": self.login, "password": self.password}
        self.ask("sign in", "POST", "/login", data=data)
        self._find_token(self.ask("course page", "GET", "/"))

    def _find_token(self, page: httpx2.Response) -> None:
        found = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
        if found:
            self.token = found[1]

    def submit(self, source: str, problem: int = PROBLEM) -> int:
        data = {"csrf_token": self.token, "source": source}
        answer = self.ask("submit", "POST", f"/problems/{problem}/submissions", data=data, as_json=True)
        self.number = int(answer.json()["id"]) if answer.status_code == 201 else 0
        return self.number

    def follow(self, until: float) -> str:
        """Poll as the page does where no stream is open; the final status."""
        while time.monotonic() < until:
            state = self.ask("state", "GET", f"/submissions/{self.number}/state", as_json=True).json()
            if state.get("final"):
                return str(state["status"])
            time.sleep(FOLLOW_S)
        return "not judged"


@click.command(context_settings={"help_option_names": ["-h", "--help"]}, help=__doc__)
@click.option("--learners", default=200, show_default=True)
@click.option("--seconds", default=60.0, show_default=True, help="Within which all of them submit.")
def main(learners: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="load") as folder:
        data = Path(folder)
        password = _people(data, learners + 2)
        process = _start(data)
        try:
            base = _address(process, data / "log")
            measured = Measured()
            people = [Learner(base, f"l{n:03}", password, measured) for n in range(learners + 2)]
            click.echo(f"{learners} learners sign in")
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(Learner.sign_in, people))
            measured.times.clear()
            _last_minute(people[:learners], seconds)
            _flood(people[-2], people[-1])
            for person in people:
                person.client.close()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _people(data: Path, count: int) -> str:
    from judge.store import Store
    from web.accounts import passwords
    from web.accounts.tables import User
    from web.settings import Settings

    password = passwords.draw().text
    store = Store(Settings(data_dir=data).url)
    store.migrate()
    hashed = passwords.hashed(password, login="l")
    with store.write() as session:
        session.add_all(
            User(login=f"l{n:03}", name=f"Learner {n}", password_hash=hashed) for n in range(count)
        )
    store.close()
    return password


def _start(data: Path) -> subprocess.Popen[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("COURSE_")}
    env |= {"COURSE_DATA_DIR": str(data), "COURSE_ACCOUNTS": "password", "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "web.serve", "--port", "0"],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )


def _address(process: subprocess.Popen[str], log: Path) -> str:
    """The site's address, once it answers; its output is read on, or it would block on a full pipe."""
    found: list[str] = []
    ready = threading.Event()

    def read() -> None:
        for line in process.stdout or ():
            if not found and (address := re.search(r"http://127\.0\.0\.1:\d+", line)):
                found.append(address[0])
                ready.set()
        ready.set()

    threading.Thread(target=read, daemon=True).start()
    if not ready.wait(START_S) or not found:
        raise click.ClickException(f"the site does not start:\n{log.read_text()[-2000:]}")
    return found[0]


def _last_minute(people: list[Learner], seconds: float) -> None:
    """All submit within `seconds`, half of them something wrong, and look at pages while they wait."""
    from judge.packages import load_packages

    package = load_packages()[PROBLEM]
    programs = [package.solution, *(w.source for w in package.wrong.values())]
    start, draw = time.monotonic(), random.Random(1)
    until = start + seconds + DRAIN_S

    def one(person: Learner, at: float, source: str) -> str:
        time.sleep(max(0.0, start + at - time.monotonic()))
        person.ask("problem page", "GET", f"/problems/{PROBLEM}")
        if not person.submit(source):
            return "refused"
        person.ask("list of mine", "GET", "/submissions")
        status = person.follow(until)
        person.ask("result page", "GET", f"/submissions/{person.number}")
        return status

    with ThreadPoolExecutor(len(people)) as pool:
        jobs = [
            pool.submit(
                one,
                p,
                draw.uniform(0, seconds),
                draw.choice(programs) if draw.random() < 0.5 else programs[0],
            )
            for p in people
        ]
        statuses = Counter(job.result() for job in jobs)
    measured = people[0].measured
    took = time.monotonic() - start
    click.echo(
        f"{len(people)} submissions within {seconds:g} s, all judged after {took:.0f} s: {dict(statuses)}"
    )
    for what, times in measured.times.items():
        p50, p95, most = (_percentile(times, part) for part in (0.5, 0.95, 1.0))
        click.echo(
            f"{what:<14} {len(times):>6} x   p50 {p50:6.0f} ms   p95 {p95:6.0f} ms   longest {most:6.0f} ms"
        )
    click.echo(f"faults: {dict(measured.faults) or 'none'}")


def _flood(flooder: Learner, other: Learner) -> None:
    """One user sends as much as the site takes; how long another's submission waits meanwhile."""
    slow = "import time\n\n\ndef flashinfer_metadata(reqs, page_table, page_size):\n    time.sleep(0.05)\n"
    taken = sum(bool(flooder.submit(slow)) for _ in range(FLOOD))
    start = time.monotonic()
    other.submit("def align_down(n, page_size):\n    return n // page_size * page_size\n", problem=40)
    status = other.follow(start + 60)
    click.echo(
        f"a flood of {FLOOD} ({taken} taken, the rest told why not): another's submission was {status} "
        f"after {time.monotonic() - start:.1f} s"
    )


def _percentile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))]


if __name__ == "__main__":
    main()
