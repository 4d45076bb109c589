"""Judging on a site from the terminal: a real site over a real socket, and sites that misbehave."""

from __future__ import annotations

import json
import os
import shutil
import signal
import string
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from werkzeug.serving import make_server

from judge.judge import Judge
from practice.judge import main
from practice.remote_texts import TEXTS
from practice.site import SiteError, check_address
from tests.web.test_web_serve import Served
from web.app import create_app
from web.settings import Settings

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PROBLEM = ROOT / "problems" / "200_flashinfer_metadata"
SCHEMA = json.loads((ROOT / "judge" / "verdict.schema.json").read_text())
TOKEN = "a-token-for-tests"
LOOK_S = 0.01  # how often a server looks whether it is to end: half a second, where nobody says


class RealSite:
    """The app behind a socket; `judge_all` does a worker's work."""

    def __init__(self, folder: Path, migrated: Path) -> None:
        shutil.copy(migrated, folder / "course.db")
        settings = Settings(data_dir=folder, token=TOKEN)
        self.app = create_app(settings)
        self.services = self.app.extensions["course"]
        self.server = make_server("127.0.0.1", 0, self.app, threaded=True)
        self.url = f"http://127.0.0.1:{self.server.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(LOOK_S,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join(10)
        self.server.server_close()
        self.services.store.close()


@pytest.fixture
def site(tmp_path: Path, migrated: Path) -> Iterator[RealSite]:
    made = RealSite(tmp_path, migrated)
    yield made
    made.close()


@pytest.fixture
def working(site: RealSite, judge: Judge) -> Iterator[RealSite]:
    """The site with somebody who judges."""
    ends = threading.Event()
    packages = dict(site.services.packages)

    def work() -> None:
        while not ends.wait(0.05):
            if claim := site.services.queue.claim("test"):
                which = "public" if claim.public_only else "all"
                package = packages[claim.problem]
                verdict = judge.judge(package, claim.source, claim.seed, which=which).to_json()
                site.services.queue.finish(claim, verdict)

    worker = threading.Thread(target=work)
    worker.start()
    yield site
    ends.set()
    worker.join(60)


def start(url: str, *arguments: str, token: str = TOKEN) -> subprocess.Popen[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("COURSE_")}
    env |= {"LC_ALL": "C.UTF-8", "COLUMNS": "200"} | {"COURSE_API_TOKEN": token}
    command = [
        sys.executable,
        str(ROOT / "practice" / "judge.py"),
        "test",
        "200",
        *arguments,
        "--remote",
        url,
    ]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=env, text=True, preexec_fn=interruptible, **pipes)


def interruptible() -> None:
    """What a terminal's program is. Tests that run in the background of a shell inherit that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def call(url: str, *arguments: str, token: str | None = TOKEN) -> tuple[int, str, str]:
    """The same in this process: status, output, errors."""
    env = {"COURSE_API_TOKEN": token, "LC_ALL": "C.UTF-8", "COLUMNS": "200"}
    done = CliRunner().invoke(main, ["test", "200", *arguments, "--remote", url], env=env)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, done.stdout, done.stderr


SOLUTION = str(PROBLEM / "solution.py")
WRONG = str(PROBLEM / "wrong" / "no_leading_zero.py")


def test_the_verdict_comes_as_from_the_local_judge(working):
    code, out, err = call(working.url, SOLUTION)
    assert (code, "20 of 20" in out) == (0, True), err
    assert f"{working.url}/submissions/1" in err
    code, out, err = call(working.url, WRONG, "--run")
    assert code == 1, err
    assert "public cases only" in out
    assert "Diagnosis" in out
    assert "--seed" not in out
    code, out, err = call(working.url, WRONG, "--json")
    verdict = json.loads(out)
    jsonschema.validate(verdict, SCHEMA)
    assert (code, verdict["status"]) == (1, "wrong_answer")
    with working.services.store.read() as session:
        from judge.store import reading

        assert [s.public_only for s in reading.history(session, "local")] == [False, True, False]


def test_the_one_command_starts_a_site_that_takes_it(tmp_path):
    served = Served(tmp_path, "--port", "0")
    try:
        [(address, token)] = served.wait_for(r"(http://\S+)/enter\?token=(\S+)")
        served.wait_for("worker_ready")
        process = start(address, SOLUTION, token=token)
        out, err = process.communicate(timeout=120)
    finally:
        served.end()
    assert (process.returncode, "20 of 20" in out) == (0, True), err


def test_bytes_arrive_as_they_are(site, tmp_path):
    program = tmp_path / "program.py"
    program.write_bytes("\ufeffx = 'é'\r\n".encode())
    code, _out, err = call(site.url, str(program), "--wait", "1")
    assert code == 3
    assert "goes on" in err
    with site.services.store.read() as session:
        from judge.store import reading

        assert reading.find(session, "local", 1).source == program.read_bytes()


@pytest.mark.parametrize(
    ("wish", "status", "said"),
    [("cancel", "cancelled", "is cancelled"), ("leave", "queued", "goes on"), ("ask", "queued", "goes on")],
)
def test_ctrl_c_cancels_or_leaves_and_says_which(site, wish, status, said):
    process = start(site.url, SOLUTION, "--on-interrupt", wish)
    from judge.store import reading

    ends = time.monotonic() + 60
    found = None
    while found is None:
        assert time.monotonic() < ends
        time.sleep(0.1)
        with site.services.store.read() as session:
            found = reading.find(session, "local", 1)
    time.sleep(0.5)  # it has had its answer and waits
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert said in err
    with site.services.store.read() as session:
        assert reading.find(session, "local", 1).status == status


def test_another_version_is_noted(working):
    package = replace(working.services.packages[200])
    object.__setattr__(package, "version", "0123456789abcdef")
    working.services.packages[200] = package
    code, _out, err = call(working.url, SOLUTION, "--run")
    assert code == 0, err
    assert "0123456789abcdef" in err


@pytest.mark.parametrize(
    ("arguments", "token", "words"),
    [
        ((), "wrong", "does not take this token"),
        ((), None, "--token-file"),
        ((), "two words", "is no token"),
        (("--token-file", "/nowhere/token"), None, "cannot be read"),
        (("--watch",), TOKEN, "--watch"),
        (("--seed", "0"), TOKEN, "--seed"),
        (("--case", "readme"), TOKEN, "--case"),
    ],
)
def test_wrong_usage_is_said(site, arguments, token, words):
    code, _out, err = call(site.url, SOLUTION, *arguments, token=token)
    assert code == 2
    assert words in err


def test_a_token_file_that_others_can_read_is_noted(site, tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o644)
    code, _out, err = call(site.url, SOLUTION, "--token-file", str(file), "--wait", "1", token=None)
    assert code == 3
    assert "chmod 600" in err
    assert TOKEN not in err


def test_a_problem_that_the_site_lacks(site):
    del site.services.packages[200]
    code, _out, err = call(site.url, SOLUTION)
    assert (code, "no problem 200" in err) == (2, True)


def test_too_many_waiting_is_said(site):
    for _ in range(20):
        site.services.queue.submit(user="local", problem=200, version="0" * 16, source=b"")
    code, _out, err = call(site.url, SOLUTION)
    assert code == 3
    assert "waiting already" in err


def test_what_is_no_utf8_is_said_before_it_is_sent(site, tmp_path):
    program = tmp_path / "program.py"
    program.write_bytes(b"x = 1\n\xff")
    code, _out, err = call(site.url, str(program))
    assert code == 2
    assert "UTF-8" in err
    with site.services.store.read() as session:
        from judge.store import reading

        assert reading.history(session, "local") == []


class Odd(BaseHTTPRequestHandler):
    """A server that is no site of ours; the path's host decides nothing, the class attribute does."""

    answer = (200, {}, b"<html>")
    heard: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.heard.append(self.headers.get("Authorization", ""))
        code, headers, body = self.answer
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def odd() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Once", (Odd,), {"heard": []}))
    thread = threading.Thread(target=server.serve_forever, args=(LOOK_S,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ((200, {}, b"<html>"), 2, "not this course's API"),
        ((200, {}, b"[1]"), 2, "not this course's API"),
        ((200, {}, b'{"problems": null}'), 2, "not this course's API"),
        ((200, {}, b'{"problems": [1]}'), 2, "not this course's API"),
        ((500, {}, b'{"error": "e", "advice": "a", "fields": null}'), 3, "answers 500"),
        ((404, {}, b"nothing here"), 2, "answers 404"),
        ((502, {}, b"bad gateway"), 3, "answers 502"),
        ((500, {}, b'{"error": "e", "advice": "a", "fields": []}'), 3, "e a"),
        ((429, {"Retry-After": "7"}, b'{"error": "e", "advice": "a", "fields": []}'), 3, "again in 7 s"),
        ((200, {"Content-Length": "100"}, b"{"), 3, "no answer"),
    ],
)
def test_a_server_that_is_none_of_ours(odd, answer, code, words):
    odd.RequestHandlerClass.answer = answer
    got, _out, err = call(f"http://127.0.0.1:{odd.server_port}", SOLUTION)
    assert got == code, err
    assert words in err


def test_the_token_does_not_follow_a_redirect(odd, site):
    """From one server to another: the second is never asked."""
    other = ThreadingHTTPServer(("127.0.0.1", 0), type("Other", (Odd,), {"heard": []}))
    threading.Thread(target=other.serve_forever, args=(LOOK_S,), daemon=True).start()
    target = f"http://127.0.0.1:{other.server_port}/api/v1/problems"
    odd.RequestHandlerClass.answer = (302, {"Location": target}, b"")
    code, _out, err = call(f"http://127.0.0.1:{odd.server_port}", SOLUTION)
    other.shutdown()
    other.server_close()
    assert code == 2
    assert target in err
    assert other.RequestHandlerClass.heard == []


def test_nobody_there():
    code, _out, err = call("http://127.0.0.1:9", SOLUTION)
    assert code == 3
    assert "no answer" in err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("course.example.edu", "scheme and host"),
        ("ftp://course.example.edu", "scheme and host"),
        ("http://127.0.0.1:8000/enter?token=secret", "scheme and host"),
        ("https://me:secret@course.example.edu", "scheme and host"),
        ("https://[", "scheme and host"),
        ("https://a b", "scheme and host"),
        ("https://host:99999", "scheme and host"),
        ("https://课程.example", "scheme and host"),
        ("http://course.example.edu", "--insecure"),
        ("http://localhost.example.edu", "--insecure"),
        ("http://127.0.0.1.example.edu", "--insecure"),
    ],
)
def test_addresses_that_are_refused(url, words):
    with pytest.raises(SiteError, match=words) as refused:
        check_address(url, False, "en")
    assert refused.value.code == 2
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "insecure"),
    [
        ("https://course.example.edu/", False),
        ("http://localhost:8000", False),
        ("http://127.0.0.1:8000/", False),
        ("http://[::1]:8000", False),
        ("http://course.example.edu", True),
    ],
)
def test_addresses_that_are_taken(url, insecure):
    assert check_address(url, insecure, "en") == url.rstrip("/")


def test_texts_are_complete_in_both_languages():
    def fields(sentence: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}

    for key, sentences in TEXTS.items():
        assert sentences.keys() == {"zh", "en"}, key
        assert fields(sentences["zh"]) == fields(sentences["en"]), key
