"""What the tokenizer process makes of each message, and that the end of a request is told once to each side."""

from pathlib import Path
from typing import Any

import pytest

from minisgl.core import SamplingParams
from minisgl.message.backend import AbortBackendMsg, AskStatusBackendMsg, UserMsg
from minisgl.message.frontend import StatusReply, UserReply
from minisgl.message.tokenizer import AbortMsg, AskStatusMsg, DetokenizeMsg, SchedulerStatusMsg, TokenizeMsg
from minisgl.tokenizer.server import TokenizerWorker
from minisgl.tokenizer.tokenize import PromptError, Tokenizer
from minisgl.utils.hf import load_tokenizer

GREEDY = SamplingParams()


@pytest.fixture(scope="module")
def tokenizer(tiny_qwen3: Path) -> Any:
    return load_tokenizer(tiny_qwen3)


@pytest.fixture
def worker(tokenizer: Any) -> TokenizerWorker:
    return TokenizerWorker(tokenizer)


def ids_of(messages: list[Any]) -> list[list[int]]:
    return [message.input_ids.tolist() for message in messages if isinstance(message, UserMsg)]


def test_text_chat_and_ids_become_tokens(worker: TokenizerWorker, tokenizer: Any) -> None:
    chat = [{"role": "user", "content": "页表"}]
    asked = [TokenizeMsg(0, "页表", GREEDY), TokenizeMsg(1, chat, GREEDY), TokenizeMsg(2, (7, 8), GREEDY)]
    to_backend, to_frontend = worker.process(asked)
    laid_out = "<|im_start|>user\n页表<|im_end|>\n<|im_start|>assistant\n"
    wanted = [tokenizer.encode("页表"), tokenizer.encode(laid_out), [7, 8]]
    assert (ids_of(to_backend), to_frontend) == (wanted, [])


def test_arguments_reach_the_chat_template(tokenizer: Any) -> None:
    chat = [{"role": "user", "content": "x"}]
    prompts = Tokenizer(tokenizer)
    assert not prompts.lay_out(chat, {"add_generation_prompt": False}).endswith("assistant\n")
    saved = tokenizer.chat_template
    tokenizer.chat_template = (
        "{% if thinking is defined %}<{{ thinking }}>{% endif %}"
        "{% if messages[0].role != 'user' %}{{ raise_exception('begin with the user') }}{% endif %}"
    )
    try:
        assert prompts.lay_out(chat, {"thinking": 3}) == "<3>"
        with pytest.raises(PromptError, match="begin with the user"):
            prompts.lay_out([{"role": "system", "content": "x"}], {})
        with pytest.raises(PromptError, match="cannot set tokenize"):
            prompts.lay_out(chat, {"tokenize": True})
        tokenizer.chat_template = "{{ unclosed"
        with pytest.raises(PromptError, match="refuses"):
            prompts.lay_out(chat, {})
        tokenizer.chat_template = None
        with pytest.raises(PromptError, match="no chat template"):
            prompts.lay_out(chat, {})
    finally:
        tokenizer.chat_template = saved


def test_a_prompt_that_cannot_be_is_answered_at_once_and_goes_no_further(worker: TokenizerWorker) -> None:
    to_backend, to_frontend = worker.process([TokenizeMsg(4, (1, 2**31), GREEDY), AbortMsg(4)])
    assert to_backend == []
    (reply,) = to_frontend
    assert isinstance(reply, UserReply)
    assert (reply.uid, reply.finished, reply.finish_reason) == (4, True, "error")
    assert "token id" in (reply.error or "")


def test_answers_are_kept_apart_and_end(worker: TokenizerWorker, tokenizer: Any) -> None:
    one, two = (
        tokenizer.encode("页🎉", add_special_tokens=False),
        tokenizer.encode("表🎉", add_special_tokens=False),
    )
    worker.process([TokenizeMsg(1, "x", GREEDY), TokenizeMsg(2, "y", GREEDY)])
    texts = {1: "", 2: ""}
    for at in range(max(len(one), len(two))):
        steps = []
        for uid, ids in ((1, one), (2, two)):
            if at < len(ids):
                last = at == len(ids) - 1
                steps.append(DetokenizeMsg(uid, ids[at], last, "length" if last else None))
        for reply in worker.process(steps)[1]:
            assert isinstance(reply, UserReply)
            texts[reply.uid] += reply.text
    assert texts == {1: "页🎉", 2: "表🎉"}
    assert worker.process([DetokenizeMsg(1, 5, True, "length"), AbortMsg(2)]) == ([], [])


def test_an_abort_goes_on_to_the_scheduler_and_what_still_comes_is_dropped(worker: TokenizerWorker) -> None:
    worker.process([TokenizeMsg(1, "x", GREEDY)])
    assert worker.process([AbortMsg(1), AbortMsg(1)]) == ([AbortBackendMsg(1)], [])
    late = [DetokenizeMsg(1, 50, False), DetokenizeMsg(1, None, True, "abort")]
    assert worker.process(late) == ([], [])


def test_an_abort_in_the_same_batch_comes_behind_its_request(worker: TokenizerWorker) -> None:
    to_backend, _ = worker.process([TokenizeMsg(1, "x", GREEDY), AbortMsg(1)])
    assert [type(message) for message in to_backend] == [UserMsg, AbortBackendMsg]


def test_a_stop_that_is_found_here_ends_the_request_on_both_sides(
    worker: TokenizerWorker, tokenizer: Any
) -> None:
    ids = tokenizer.encode("ab.cd", add_special_tokens=False)
    worker.process([TokenizeMsg(1, "x", SamplingParams(stop=(".",)))])
    to_backend, to_frontend = worker.process([DetokenizeMsg(1, token, False) for token in ids])
    assert to_backend == [AbortBackendMsg(1)]
    replies = [reply for reply in to_frontend if isinstance(reply, UserReply)]
    assert "".join(reply.text for reply in replies) == "ab"
    assert [reply.finish_reason for reply in replies if reply.finished] == ["stop"]
    assert worker.process([DetokenizeMsg(1, None, True, "abort")]) == ([], [])


def test_a_refusal_of_the_scheduler_is_handed_on(worker: TokenizerWorker) -> None:
    worker.process([TokenizeMsg(1, "x", GREEDY)])
    _, replies = worker.process([DetokenizeMsg(1, None, True, "error", error="too long")])
    assert replies == [UserReply(1, "", True, "error", error="too long")]


def test_questions_about_the_scheduler_pass_both_ways(worker: TokenizerWorker) -> None:
    assert worker.process([AskStatusMsg(5), SchedulerStatusMsg(5, {"running": 1})]) == (
        [AskStatusBackendMsg(5)],
        [StatusReply(5, {"running": 1})],
    )
