"""Chapter 15: a server in processes of its own answers as the engine does, refuses what it cannot honour, notices
who hangs up, and ends as a whole.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import minisgl
from minisgl.core import SamplingParams
from minisgl.llm import LLM
from minisgl.server.args import parse_args

WAIT_S = 90.0
PAGES = 256
PROMPT = [40, 71, 82, 303, 9]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """The model is small and the machine may be busy: threads that wait for one another only slow it down."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def server(model_folder: Path) -> Iterator[subprocess.Popen[str]]:
    path = os.pathsep.join([str(Path(minisgl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-m", "minisgl", "--model", str(model_folder), "--port", "0", "--num-pages", str(PAGES),
         "--attn", "torch"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        process.url = process.stdout.readline().split()[-1]  # type: ignore[attr-defined]
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ask(server: Any, path: str, body: dict[str, Any] | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=WAIT_S)
    connection.request(
        "GET" if body is None else "POST", path, json.dumps(body), {"Content-Type": "application/json"}
    )
    return connection.getresponse()


def available(server: Any) -> int:
    return int(json.load(ask(server, "/health"))["available_pages"])


def test_an_answer_is_the_engines_own_whole_or_in_pieces(server: Any, model_folder: Path) -> None:
    llm = LLM(str(model_folder), num_page_override=PAGES, attention_backend="torch")
    params = SamplingParams(max_tokens=6, ignore_eos=True, logprobs=0)
    (wanted,) = llm.generate([PROMPT], params)
    llm.shutdown()
    body = {"prompt": PROMPT, "max_tokens": 6, "ignore_eos": True, "temperature": 0, "logprobs": 0}
    whole = json.load(ask(server, "/v1/completions", body))
    assert wanted["logprobs"] is not None
    expected = [one.logprob for one in wanted["logprobs"]]
    assert whole["choices"][0]["logprobs"]["token_logprobs"] == pytest.approx(expected, abs=1e-4)
    assert whole["choices"][0]["text"] == wanted["text"]
    assert whole["usage"]["completion_tokens"] == 6
    lines = [line.decode().strip() for line in ask(server, "/v1/completions", {**body, "stream": True})]
    events = [line.removeprefix("data: ") for line in lines if line]
    assert events[-1] == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert "".join(choice["text"] for choice in choices) == wanted["text"]
    told = [one for choice in choices for one in choice["logprobs"]["token_logprobs"]]
    assert told == pytest.approx(expected, abs=1e-4)
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["length"]


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"top_p": 0}, 400, "top_p=0"),
        ({"logit_bias": {"1": 1}}, 400, "logit_bias"),
        ({"unknown": 1}, 400, "not known"),
        ({"prompt": [1] * 300}, 400, "300 tokens"),
        ({"model": "another"}, 404, "another"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    server: Any, change: dict[str, Any], status: int, said: str
) -> None:
    response = ask(server, "/v1/completions", {"prompt": "a", "max_tokens": 1, **change})
    assert response.status == status
    assert said in json.load(response)["error"]["message"]


def test_whoever_hangs_up_is_aborted_and_the_pages_are_free(server: Any) -> None:
    stream = ask(server, "/generate", {"prompt": PROMPT, "max_tokens": 200, "ignore_eos": True})
    assert stream.readline().startswith(b"data: ")
    assert available(server) < PAGES
    stream.close()
    deadline = time.monotonic() + WAIT_S
    while available(server) < PAGES:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ctrl_c_ends_it(server: Any) -> None:
    os.killpg(server.pid, signal.SIGINT)
    assert server.wait(WAIT_S) == 0


def test_flags_have_the_names_people_know(model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(model_folder)
    config, shell = parse_args(
        ["--model-path", model, "--tp-size", "2", "--attn", "fa,fi", "--page-size", "4", "--num-pages", "9",
         "--memory-ratio", "0.5", "--max-running-requests", "3", "--max-prefill-length", "64", "--cache-type",
         "naive", "--cuda-graph-max-bs", "2", "--num-tokenizer", "2", "--host", "::1", "--port", "7",
         "--dtype", "float32"]
    )  # fmt: skip
    assert not shell
    assert (config.model_path, config.tp_info.size, config.attention_backend) == (model, 2, "fa,fi")
    assert (config.page_size, config.num_page_override, config.memory_ratio) == (4, 9, 0.5)
    assert (config.max_running_req, config.max_extend_tokens, config.cache_type) == (3, 64, "naive")
    assert (config.cuda_graph_max_bs, config.num_tokenizer, config.host, config.port) == (2, 2, "::1", 7)
    config, shell = parse_args(["--model", model, "--shell-mode"])
    assert shell
    assert config.max_running_req == 1
    for wrong, said in [
        (["--model", "/nowhere"], "no model folder"),
        (["--model", model, "--page-size", "0"], "page_size=0"),
        (["--model", model, "--attn", "fast"], "fast"),
        ([], "--model"),
    ]:
        with pytest.raises(SystemExit):
            parse_args(wrong)
        assert said in capsys.readouterr().err
