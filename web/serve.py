"""`python -m web.serve`: the whole site with one command. Makes the database, starts the web server and one
worker as processes of their own, starts again what dies, and ends both when told to.

The worker is never forked from the server: a process with threads cannot be forked safely, and the judge
forks a lot.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from pydantic import ValidationError

from judge.archive import Archive
from judge.packages import PackageError, survey
from judge.store import Store
from web.accounts import people
from web.assets import FrontendMissing, load_manifest
from web.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0
HEALTHY_AFTER_S = 30.0  # a child that lived this long starts again at once
END_S = 10.0  # a child that has not ended this long after SIGTERM is killed
START_S = 60.0
KEEP_ALIVE_S = 75
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before any fork
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class StartError(Exception):
    """The site cannot be started; the text says why and what to do."""


@dataclass
class Child:
    """A process that is to be there all the time.

    Invariants
    - `process` is None exactly between an end and the next start, which is due at `due` (monotonic seconds).
    - `delay` doubles with every early death and is forgotten after a healthy life.
    """

    name: str
    command: list[str]
    env: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    due: float = 0.0
    delay: float = field(default=FIRST_DELAY_S)

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            env=dict(self.env),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            process_group=0,  # Ctrl+C in the terminal reaches this process only, which ends the children in order
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        self.started = time.monotonic()

    def look_after(self) -> None:
        """Notice a death, start again when it is due."""
        now = time.monotonic()
        if self.process is not None:
            code = self.process.poll()
            if code is None:
                return
            if now - self.started >= HEALTHY_AFTER_S:
                self.delay = FIRST_DELAY_S
            self.process, self.due = None, now + self.delay
            print(
                f"{self.name} ended ({_how(code)}); starts again in {self.delay:g} s",
                file=sys.stderr,
                flush=True,
            )
            self.delay = min(self.delay * 2, LONGEST_DELAY_S)
        elif now >= self.due:
            self.start()

    def tell_to_end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def wait_for_end(self, until: float) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            print(f"{self.name} does not end: killed", file=sys.stderr, flush=True)
            self.process.kill()
            self.process.wait()


def _end_with_parent() -> None:
    """In a new child: have the kernel send SIGTERM when the supervisor is gone, however it went."""
    pr_set_pdeathsig = 1
    _LIBC.prctl(pr_set_pdeathsig, signal.SIGTERM)


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGINT or SIGTERM. 0: ended as told; 2: could not start."""
    parser = argparse.ArgumentParser(prog="python -m web.serve", description="The course site and its judge.")
    parser.add_argument(
        "--only", choices=["web", "worker"], help="start this one alone, as a container of its own does"
    )
    parser.add_argument("--host", help="address to listen on (COURSE_HOST, else 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, help="port to listen on (COURSE_PORT, else 8000); 0 takes a free one"
    )
    given = {k: v for k, v in vars(parser.parse_args(arguments)).items() if v is not None}
    only = given.pop("only", None)
    try:
        return _serve(_settings(given), only)
    except (StartError, FrontendMissing, PackageError) as error:
        print(f"The site cannot start: {error}", file=sys.stderr)
        return 2


def _settings(given: dict[str, object]) -> Settings:
    try:
        settings = Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        raise StartError(f"setting {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    public = settings.host not in LOOPBACK and not settings.published_on_loopback
    if public and settings.accounts == "none":
        raise StartError(
            f"host {settings.host!r} is not a loopback address. This mode has no login: whoever reaches the "
            "port could run code. Use 127.0.0.1, and an SSH tunnel to reach it from elsewhere; or "
            "COURSE_ACCOUNTS=password for a site with accounts."
        )
    if public and not settings.site_url:
        raise StartError(
            f"host {settings.host!r} can be reached from elsewhere: set COURSE_SITE_URL to the address that people "
            "open, such as http://course.example.edu:8000. Requests for other names are refused."
        )
    token = settings.token.get_secret_value() or secrets.token_urlsafe(24)
    port = _free_port(settings.host, settings.port)
    return settings.model_copy(update={"token": type(settings.token)(token), "port": port})


def _free_port(host: str, port: int) -> int:
    """`port` if it can be listened on (0: some free port). Raises StartError if another program has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StartError(
                f"port {port} of {host} cannot be used ({error.strerror}). Is the site running already? "
                f"Choose another: make serve PORT={port + 1}"
            ) from None
        free: int = probe.getsockname()[1]
        return free


def _serve(settings: Settings, only: str | None) -> int:
    load_manifest()
    archive = Archive(settings.packages)
    for package in survey().packages.values():  # what is submitted from now on can be judged by this version
        archive.keep(package)
    settings.session_key()
    store = Store(settings.url)
    store.migrate()
    store.close()

    env = {k: v for k, v in os.environ.items() if k != "COURSE_TOKEN"}
    env |= {"COURSE_DATA_DIR": str(settings.data_dir.resolve()), "PYTHONUNBUFFERED": "1"}
    own = {
        "COURSE_HOST": settings.host,
        "COURSE_PORT": str(settings.port),
        "COURSE_TOKEN": settings.token.get_secret_value(),
    }
    alone = settings.host in LOOPBACK and not settings.published_on_loopback and settings.accounts == "none"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    base = f"http://{host if settings.host in LOOPBACK else '127.0.0.1'}:{settings.port}"
    gunicorn = ["-m", "gunicorn", "--bind", f"{host}:{settings.port}", "--worker-class", "gthread"]
    gunicorn += ["--workers", "1", "--threads", str(settings.threads), "--log-level", "warning"]
    # Longer than browsers and proxies keep an idle connection: whoever closes first must not be us, or a request that is
    # just being sent on it is lost.
    gunicorn += ["--keep-alive", str(KEEP_ALIVE_S)]
    gunicorn += ["--graceful-timeout", "2", "--no-control-socket", "web.app:from_environment()"]
    children = [
        Child("web", [sys.executable, *gunicorn], env | own),
        Child("worker", [sys.executable, "-m", "judge.worker"], env | {"COURSE_ALLOW_LOCAL": str(alone)}),
    ]
    return _supervise([c for c in children if only in (None, c.name)], base, settings)


def _supervise(children: list[Child], base: str, settings: Settings) -> int:
    told = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal told
        told = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        for child in children:
            child.start()
        announced = all(child.name != "web" for child in children)
        gives_up = time.monotonic() + START_S
        while not told:
            for child in children:
                child.look_after()
            if not announced and _answers(base):
                announced = True
                _announce(base, settings)
            elif not announced and time.monotonic() > gives_up:
                raise StartError(f"{base} does not answer after {START_S:g} s; the lines above say why")
            time.sleep(0.05 if not announced else 0.2)
    finally:
        for child in children:
            child.tell_to_end()
        until = time.monotonic() + END_S
        for child in children:
            child.wait_for_end(until)
    return 0


def _answers(base: str) -> bool:
    try:
        with urllib.request.urlopen(f"{base}/static/build/manifest.json", timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _announce(base: str, settings: Settings) -> None:
    base = settings.site_url or base
    token = settings.token.get_secret_value()
    rows = [("打开 / open", f"{base}/enter?token={token}")]
    if settings.accounts != "none":
        rows = [("打开 / open", base)]
        if not _has_admin(settings):
            rows.append(("第一位管理员 / first administrator", f"{base}/enter?token={token}"))
    text = "\n".join(f"  {label}   {address}" for label, address in rows)
    print(f"\n  手写 mini-sglang\n\n{text}\n\n  Ctrl+C 结束 / ends it\n", flush=True)


def _has_admin(settings: Settings) -> bool:
    store = Store(settings.url)
    try:
        with store.read() as session:
            return people.admins(session) > 0
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(main())
