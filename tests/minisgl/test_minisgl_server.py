"""The server as its clients see it: OpenAI's own client, curl, and clients that misbehave.

The model recites a sentence with Chinese characters and an emoji; a prompt that ends in a letter is continued with
that letter for ever.
"""

import json
import random
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from examples.ch15_api_server import SENTENCE, make_reciting_model
from minisgl.server.args import MAX_STOPS, NEUTRAL
from minisgl.utils.hf import load_tokenizer
from tests.minisgl.serving import WAIT_S, Server, eventually, serving
from tools.models import cached

CHAT: list[dict[str, str]] = [{"role": "user", "content": "你好"}]
TOKENS = len(load_tokenizer(cached("qwen3")).encode(SENTENCE))
PAGES = 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    model = tmp_path_factory.mktemp("model") / "reciter"
    make_reciting_model(model, cached("qwen3"))
    with serving(
        model, "--num-pages", str(PAGES), "--max-running-requests", "16", environment={"MINISGL_CHECK": "1"}
    ) as server:
        yield server
        assert server.wait_until_idle()["available_pages"] == PAGES, "a test has lost pages"
        assert server.process.poll() is None, server.stderr


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=WAIT_S, max_retries=0) as client:
        yield client


def post(server: Server, path: str, body: Any) -> httpx2.Response:
    return httpx2.post(f"{server.url}{path}", json=body, timeout=WAIT_S, trust_env=False)


# -- OpenAI's client -------------------------------------------------------------------------------------


def test_a_chat_is_answered_as_a_whole_with_its_usage(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tiny", messages=CHAT, temperature=0)
    (choice,) = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", SENTENCE)
    assert (choice.finish_reason, answer.object, answer.model) == ("stop", "chat.completion", "tiny")
    assert answer.usage is not None
    again = client.chat.completions.create(model="tiny", messages=CHAT, temperature=0)
    assert again.usage is not None
    assert again.usage.total_tokens == again.usage.prompt_tokens + again.usage.completion_tokens
    assert again.usage.prompt_tokens == answer.usage.prompt_tokens
    assert again.usage.prompt_tokens_details is not None
    cached_tokens = again.usage.prompt_tokens_details.cached_tokens
    assert cached_tokens == again.usage.prompt_tokens - 1  # one token is always computed
    assert again.id != answer.id


def test_a_streamed_chat_comes_in_whole_characters(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="tiny", messages=CHAT, temperature=0, stream=True, stream_options={"include_usage": True}
        )
    )
    *pieces, usage = chunks
    texts = [chunk.choices[0].delta.content or "" for chunk in pieces]
    assert "".join(texts) == SENTENCE
    assert [text for text in texts if text] == list(SENTENCE)
    assert [chunk.choices[0].delta.role for chunk in pieces] == ["assistant"] + [None] * (len(pieces) - 1)
    assert [chunk.choices[0].finish_reason for chunk in pieces] == [None] * (len(pieces) - 1) + ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert usage.choices == []
    assert usage.usage is not None
    assert usage.usage.completion_tokens == TOKENS + 1  # the end counts, as it has been computed


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("stop", "wanted"), [("好", "中文"), (["🎉", "文好"], "中"), ("x", SENTENCE), ("中", "")]
)
def test_stop_strings(client: openai.OpenAI, stream: bool, stop: Any, wanted: str) -> None:
    answer: Any = client.chat.completions.create(
        model="tiny", messages=CHAT, temperature=0, stop=stop, stream=stream
    )
    if stream:
        choices = [chunk.choices[0] for chunk in answer]
        text, reason = "".join(choice.delta.content or "" for choice in choices), choices[-1].finish_reason
    else:
        text, reason = answer.choices[0].message.content, answer.choices[0].finish_reason
    assert (text, reason) == (wanted, "stop")


def test_two_choices_and_their_seeds(client: openai.OpenAI) -> None:
    def texts(**options: Any) -> list[str]:
        answer = client.completions.create(
            model="tiny", prompt="a", max_tokens=12, n=2, temperature=30.0, **options
        )
        assert [choice.index for choice in answer.choices] == [0, 1]
        assert answer.usage is not None
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (1, 24)
        return [choice.text for choice in answer.choices]

    ignore = {"extra_body": {"ignore_eos": True}}
    first, second = texts(seed=3, **ignore)
    assert first != second
    assert texts(seed=3, **ignore) == [first, second]
    assert texts(seed=4, **ignore) != [first, second]


def test_two_choices_streamed_are_the_two_choices_whole(client: openai.OpenAI) -> None:
    options: dict[str, Any] = {
        "model": "tiny", "prompt": "ab", "max_tokens": 20, "n": 2, "seed": 1, "temperature": 30.0
    }  # fmt: skip
    whole = [choice.text for choice in client.completions.create(**options).choices]
    streamed = ["", ""]
    for chunk in client.completions.create(**options, stream=True):
        for choice in chunk.choices:
            streamed[choice.index] += choice.text
    assert streamed == whole


def test_log_probabilities_of_a_chat(client: openai.OpenAI) -> None:
    options: dict[str, Any] = {
        "model": "tiny", "messages": CHAT, "temperature": 0, "logprobs": True, "top_logprobs": 3
    }  # fmt: skip
    answer = client.chat.completions.create(**options)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert b"".join(bytes(one.bytes or []) for one in logprobs.content[:-1]).decode() == SENTENCE
    for one in logprobs.content:
        assert len(one.top_logprobs) == 3
        assert one.top_logprobs[0].logprob == pytest.approx(one.logprob)  # greedy takes the most probable
        assert one.top_logprobs[0].token == one.token
        assert one.logprob <= 0
    streamed = [
        one
        for chunk in client.chat.completions.create(**options, stream=True)
        for one in chunk.choices[0].logprobs.content or []
    ]
    assert [one.model_dump() for one in streamed] == [one.model_dump() for one in logprobs.content]


def test_log_probabilities_of_a_completion(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="tiny", prompt="x", max_tokens=3, temperature=0, logprobs=2)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert answer.choices[0].text == "xxx"
    assert (logprobs.tokens, logprobs.text_offset) == (["x"] * 3, [0, 1, 2])
    assert [len(top) for top in logprobs.top_logprobs or []] == [2, 2, 2]


def test_several_prompts_as_text_or_as_tokens(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="tiny", prompt=["a", "b"], max_tokens=2, temperature=0)
    assert [choice.text for choice in answer.choices] == ["aa", "bb"]
    ids = client.completions.create(model="tiny", prompt=[3, 4], max_tokens=1, temperature=0)
    assert ids.usage is not None
    assert ids.usage.prompt_tokens == 2
    many = client.completions.create(model="tiny", prompt=[[3, 4], [5]], max_tokens=1, n=2, temperature=0)
    assert len(many.choices) == 4
    assert many.usage is not None
    assert (many.usage.prompt_tokens, many.usage.completion_tokens) == (3, 4)


def test_penalties_change_what_is_said(client: openai.OpenAI) -> None:
    options: dict[str, Any] = {"model": "tiny", "prompt": "a", "max_tokens": 30, "temperature": 0}
    assert client.completions.create(**options).choices[0].text == "a" * 30
    for penalty in ({"frequency_penalty": 2.0}, {"extra_body": {"repetition_penalty": 100.0}}):
        assert client.completions.create(**options, **penalty).choices[0].text != "a" * 30


def test_the_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_a_client_that_closes_its_stream_frees_the_pages(client: openai.OpenAI, server: Server) -> None:
    stream = client.completions.create(model="tiny", prompt="a", max_tokens=900, temperature=0, stream=True)
    for _ in zip(range(3), stream, strict=False):
        pass
    assert server.status()["available_pages"] < PAGES
    stream.close()
    assert server.wait_until_idle()["available_pages"] == PAGES


# -- curl and bare sockets -------------------------------------------------------------------------------


def test_curl_sees_events_as_they_come(server: Server) -> None:
    body = {"messages": CHAT, "temperature": 0, "stream": True}
    done = subprocess.run(
        ["curl", "-sSN", "--noproxy", "*", "-D", "-", f"{server.url}/v1/chat/completions",
         "-H", "Content-Type: application/json", "-d", json.dumps(body, ensure_ascii=False)],
        capture_output=True, timeout=WAIT_S, check=True,
    )  # fmt: skip
    head, _, events = done.stdout.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200")
    assert "content-type: text/event-stream" in head.lower()
    *frames, last = [frame for frame in events.split("\n\n") if frame]
    assert last == "data: [DONE]"
    contents = [json.loads(frame.removeprefix("data: "))["choices"][0] for frame in frames]
    assert "".join(content["delta"].get("content", "") for content in contents) == SENTENCE
    assert SENTENCE[-1] in events  # as itself, not escaped


def test_a_curl_that_is_killed_is_noticed(server: Server) -> None:
    body = {"prompt": "a", "max_tokens": 900}
    curl = subprocess.Popen(
        ["curl", "-sSN", "--noproxy", "*", f"{server.url}/generate", "-H", "Content-Type: application/json",
         "-d", json.dumps(body)], stdout=subprocess.PIPE,
    )  # fmt: skip
    assert curl.stdout is not None
    assert curl.stdout.readline().startswith(b"data: ")
    curl.kill()
    curl.communicate(timeout=WAIT_S)
    assert server.wait_until_idle()["available_pages"] == PAGES


def test_whoever_hangs_up_before_a_plain_answer_is_noticed_too(server: Server) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    body = json.dumps({"prompt": "a", "max_tokens": 1000, "stream": False}).encode()
    head = (
        f"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        eventually(lambda: server.status()["running"] == 1, "the request has not arrived")
    assert server.wait_until_idle()["available_pages"] == PAGES
    assert "Traceback" not in server.stderr


def test_many_clients_that_come_and_go_at_random_leave_nothing_behind(server: Server) -> None:
    def one(number: int) -> None:
        draw = random.Random(number)
        body = {
            "prompt": "页表" * draw.randrange(1, 60) + "abc"[number % 3],
            "max_tokens": draw.randrange(1, 60),
            "n": draw.randrange(1, 4),
            "stream": draw.random() < 0.7,
            "stop": ["never"],
        }
        timeout = httpx2.Timeout(WAIT_S, read=draw.choice([0.02, 0.1, WAIT_S]))
        try:
            with httpx2.stream(
                "POST", f"{server.url}/generate", json=body, timeout=timeout, trust_env=False
            ) as response:
                assert response.status_code == 200
                for count, _ in enumerate(response.iter_lines()):
                    if count > draw.choice([0, 3, 1000]):
                        return
        except httpx2.ReadTimeout:
            return

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(one, range(60)))
    assert server.wait_until_idle()["available_pages"] == PAGES


# -- refusals --------------------------------------------------------------------------------------------

ASKED = {"prompt": "a", "max_tokens": 2}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"temperature": -1}, "temperature=-1"),
        ({"temperature": "warm"}, "temperature"),
        ({"top_p": 0}, "top_p=0"),
        ({"top_k": 0}, "top_k=0"),
        ({"min_p": 1}, "min_p=1"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"n": 0}, "n: "),
        ({"n": 1000}, "n: "),
        ({"seed": 2**63}, "seed"),
        ({"stop": ""}, "stop"),
        ({"stop": ["x"] * (MAX_STOPS + 1)}, "stop: give at most"),
        ({"stop": "x" * 1000}, "stop: give at most"),
        ({"frequency_penalty": 3}, "frequency_penalty=3"),
        ({"repetition_penalty": 0}, "repetition_penalty=0"),
        ({"logprobs": 21}, "logprobs"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"best_of": 3}, "best_of=3 is not supported"),
        ({"echo": True}, "echo=true is not supported"),
        ({"suffix": "end"}, "suffix"),
        ({"temprature": 0}, "temprature: this field is not known"),
        ({"stream_options": {"include_usage": True}, "stream": False}, "stream_options"),
        ({"prompt": ""}, "the prompt is empty"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [10**9]}, "token ids outside"),
        ({"prompt": [-1]}, "token ids outside"),
        ({"prompt": [2**40]}, "no token id"),
        ({"prompt": "a\ud800"}, "half of a surrogate pair"),
        ({"prompt": "a" * 5000}, "5000 tokens"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_honoured_is_refused_at_once(
    server: Server, change: dict[str, Any], said: str, stream: bool
) -> None:
    content = json.dumps({**ASKED, "stream": stream, **change})
    response = httpx2.post(
        f"{server.url}/v1/completions",
        content=content.encode(),
        headers={"Content-Type": "application/json"},
        timeout=WAIT_S,
        trust_env=False,
    )
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert said in error["message"]
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": []}, "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "text",
        ),
        ({"messages": [{"role": "poet", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({"top_logprobs": 2}, "top_logprobs is for"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "mean the same"),
        ({"chat_template_kwargs": {"tokenize": True}}, "cannot set tokenize"),
        ({"chat_template_kwargs": {"__type__": "x"}}, "underscores"),
    ],
)
def test_what_a_chat_cannot_have_is_refused(server: Server, change: dict[str, Any], said: str) -> None:
    response = post(server, "/v1/chat/completions", {"messages": CHAT, **change})
    assert response.status_code == 400, response.text
    assert said in response.json()["error"]["message"]


def test_fields_that_ask_for_nothing_may_be_there(server: Server) -> None:
    body = {"messages": CHAT, "max_tokens": 1, "user": "me", "stop": None, "seed": None}
    for name, values in NEUTRAL.items():
        for value in (None, *values):
            response = post(server, "/v1/chat/completions", {**body, name: value})
            assert response.status_code == 200, response.text


def test_parts_of_text_and_template_arguments(server: Server) -> None:
    parts = [{"type": "text", "text": "你"}, {"type": "text", "text": "好"}]
    body = {
        "messages": [{"role": "user", "content": parts}],
        "temperature": 0,
        "max_completion_tokens": TOKENS,
    }
    answer = post(server, "/v1/chat/completions", body).json()
    assert answer["choices"][0]["message"]["content"] == SENTENCE
    assert answer["choices"][0]["finish_reason"] == "length"
    open_end = {**body, "chat_template_kwargs": {"add_generation_prompt": False}}
    without = post(server, "/v1/chat/completions", open_end).json()
    assert without["usage"]["prompt_tokens"] < answer["usage"]["prompt_tokens"]


def test_other_faults_have_their_status(server: Server) -> None:
    assert post(server, "/v1/completions", {**ASKED, "model": "gpt"}).status_code == 404
    assert "tiny" in post(server, "/v1/completions", {**ASKED, "model": "gpt"}).json()["error"]["message"]
    assert httpx2.get(f"{server.url}/nowhere", trust_env=False).status_code == 404
    assert httpx2.get(f"{server.url}/generate", trust_env=False).status_code == 405
    url = f"{server.url}/generate"
    assert httpx2.post(url, content=b"{not json", trust_env=False).status_code == 400
    assert httpx2.post(url, content=b"[]", trust_env=False).status_code == 400
    huge = b'{"prompt": "' + b"a" * (9 * 2**20) + b'"}'
    large = httpx2.post(url, content=huge, headers={"Content-Type": "application/json"}, trust_env=False)
    assert large.status_code == 413
    assert "too large" in large.json()["error"]["message"]


def test_generate_streams_by_default_and_is_greedy(server: Server) -> None:
    body = {"prompt": "b", "max_tokens": 3}
    lines = [line for line in post(server, "/generate", body).text.split("\n\n") if line]
    events = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert "".join(event["text"] for event in events) == "bbb"
    assert (events[-1]["finish_reason"], lines[-1]) == ("length", "data: [DONE]")
    whole = post(server, "/generate", {**body, "stream": False}).json()
    assert (whole["text"], whole["finish_reason"]) == ("bbb", "length")
    assert whole["usage"]["completion_tokens"] == 3


def test_requests_at_once_do_not_mix(server: Server) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    texts: dict[str, str] = {}

    def ask(letter: str) -> None:
        body = {"prompt": letter, "max_tokens": 25, "stream": False}
        texts[letter] = post(server, "/generate", body).json()["text"]

    threads = [threading.Thread(target=ask, args=(letter,)) for letter in letters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert texts == {letter: letter * 25 for letter in letters}


def test_the_example_reads_its_model_back(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has a token twice"):
        make_reciting_model(tmp_path, cached("qwen3"), "aa")
