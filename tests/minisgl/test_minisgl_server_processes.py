"""The server's processes: they start together or say why not, and they end together, with the reason told."""

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from minisgl.core import SamplingParams
from minisgl.llm import LLM
from minisgl.server.api_server import serve_http
from minisgl.server.args import parse_args
from minisgl.server.launch import EngineDied, Workers
from tests.minisgl.serving import WAIT_S, Server, eventually, launched, serving

PROMPT = [40, 71, 82, 303, 9]


def post(server: Server, body: dict[str, Any]) -> httpx2.Response:
    return httpx2.post(f"{server.url}/generate", json=body, timeout=WAIT_S, trust_env=False)


class Stream:
    """A streamed answer that is read in a thread of its own, to its end."""

    def __init__(self, server: Server) -> None:
        self.lines: list[str] = []
        self._server = server
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        eventually(lambda: bool(self.lines), server.stderr, WAIT_S)

    def _read(self) -> None:
        body = {"prompt": PROMPT, "max_tokens": 250, "ignore_eos": True}
        try:
            with httpx2.stream(
                "POST", f"{self._server.url}/generate", json=body, timeout=WAIT_S, trust_env=False
            ) as response:
                self.lines += (line for line in response.iter_lines() if line)
        except httpx2.HTTPError as error:
            self.lines.append(f"broken: {error}")

    def join(self) -> list[str]:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        return self.lines


@pytest.fixture(scope="module")
def two_ranks(tiny_qwen3: Path) -> Iterator[Server]:
    """Two ranks, two tokenizers, one running request and one that may wait. The last test of it kills it."""
    flags = ("--tp", "2", "--num-tokenizer", "2", "--max-running-requests", "1", "--max-queued-requests", "1",
             "--num-pages", "512")  # fmt: skip
    with serving(tiny_qwen3, *flags) as server:
        yield server


def test_two_ranks_and_two_tokenizers_say_what_one_process_says(two_ranks: Server, tiny_qwen3: Path) -> None:
    llm = LLM(str(tiny_qwen3), num_page_override=512)
    params = SamplingParams(max_tokens=16, ignore_eos=True)
    wanted = [answer["text"] for answer in llm.generate([PROMPT, PROMPT[:3]], params)]
    llm.shutdown()
    for prompt, text in zip([PROMPT, PROMPT[:3]], wanted, strict=True):
        body = {"prompt": prompt, "max_tokens": 16, "ignore_eos": True, "stream": False}
        assert post(two_ranks, body).json()["text"] == text


def test_a_full_queue_turns_the_next_one_away_at_once(two_ranks: Server) -> None:
    one, two = (
        Stream(two_ranks),
        threading.Thread(target=post, args=(two_ranks, {"prompt": "a", "max_tokens": 2})),
    )
    two.start()
    eventually(lambda: two_ranks.status()["waiting"] == 1, "the second request does not wait")
    refused = post(two_ranks, {"prompt": "a", "max_tokens": 2})
    assert refused.status_code == 429, refused.text
    assert refused.headers["retry-after"] == "1"
    assert "the server takes 2" in refused.json()["error"]["message"]
    never = post(two_ranks, {"prompt": "a", "n": 3})  # would not fit into an empty queue either
    assert (never.status_code, "takes 2 requests in all" in never.text) == (400, True)
    assert one.join()[-1] == "data: [DONE]"
    two.join(WAIT_S)
    assert two_ranks.wait_until_idle()["available_pages"] == 512
    assert post(two_ranks, {"prompt": "a", "max_tokens": 2, "stream": False}).status_code == 200


def test_a_rank_that_dies_ends_the_server_and_everybody_is_told_why(two_ranks: Server) -> None:
    stream = Stream(two_ranks)
    os.kill(two_ranks.pid_of("scheduler rank 1"), signal.SIGKILL)
    reason = "scheduler rank 1 has ended: killed by signal 9 (SIGKILL)"
    last = json.loads(stream.join()[-1].removeprefix("data: "))
    assert last["error"]["message"] == reason
    assert two_ranks.process.wait(WAIT_S) == 1
    assert f"minisgl: {reason}" in two_ranks.stderr
    two_ranks.wait_until_gone()


def test_ctrl_c_ends_every_process_in_the_middle_of_an_answer(tiny_qwen3: Path) -> None:
    with serving(tiny_qwen3, "--num-pages", "512") as server:
        assert len(server.left()) >= 3
        assert len(server.socket_folders()) == 1
        stream = Stream(server)
        os.killpg(server.process.pid, signal.SIGINT)  # as a terminal does: to all of them
        assert "the server is stopping" in stream.join()[-1]
        assert server.process.wait(WAIT_S) == 0
        server.wait_until_gone()
        assert "Traceback" not in server.stderr
        assert server.socket_folders() == []


def test_processes_do_not_outlive_a_server_that_is_killed(tiny_qwen3: Path) -> None:
    with serving(tiny_qwen3, "--num-pages", "512") as server:
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(WAIT_S)
        server.wait_until_gone()
        assert server.socket_folders() == []


def workers_of(*flags: str) -> Workers:
    return Workers(parse_args(["--num-pages", "64", *flags])[0])


def test_a_model_that_cannot_be_loaded_is_the_reason_for_not_starting(
    tiny_qwen3: Path, tmp_path: Path
) -> None:
    for file in tiny_qwen3.iterdir():
        if file.name != "model.safetensors":
            (tmp_path / file.name).symlink_to(file)
    workers = workers_of("--model", str(tmp_path))
    try:
        with pytest.raises(EngineDied, match=r"^scheduler rank 0 did not start: .*safetensors"):
            workers.start()
    finally:
        workers.stop()
    assert not Path(str(workers.config.socket_folder)).exists()


def test_processes_that_are_not_ready_in_time_are_named(tiny_qwen3: Path) -> None:
    workers = workers_of("--model", str(tiny_qwen3), "--startup-timeout", "0.01")
    try:
        with pytest.raises(EngineDied, match=r"not ready after 0\.01 s: scheduler rank 0"):
            workers.start()
    finally:
        workers.stop()


def test_a_port_that_is_taken_is_told_before_anything_is_started(tiny_qwen3: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config, shell = parse_args(["--model", str(tiny_qwen3), "--port", str(port)])
        assert not shell
        workers = Workers(config)
        with pytest.raises(OSError, match=f"cannot serve on 127.0.0.1 port {port}"):
            serve_http(workers)
        assert workers.dead() is None  # there is none that could be
        workers.stop()


def test_the_shell_talks_and_leaves(tiny_qwen3: Path) -> None:
    with launched("--model", str(tiny_qwen3), "--shell-mode", "--num-pages", "512") as server:
        lines = "/set temperature 0\n/set max_tokens 8\n页表\n/what\n/set top_p 7\n/reset\n页表\n"
        out, _ = server.process.communicate(lines, timeout=WAIT_S)
        assert server.process.returncode == 0, server.stderr
        server.wait_until_gone()
    first, *rest = out.split("\n/reset            forget")
    assert "top_p=7.0: give a number in (0, 1]" in rest[0]
    assert rest[0].rstrip("\n").endswith(first)  # after /reset the same question has the same answer
