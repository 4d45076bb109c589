"""Chapter 13: pieces of text are whole characters, joined they are the answer, and stop texts are found in them."""

from pathlib import Path
from typing import Any

import pytest

from minisgl.core import SamplingParams
from minisgl.message.backend import AbortBackendMsg, UserMsg
from minisgl.message.tokenizer import AbortMsg, DetokenizeMsg, TokenizeMsg
from minisgl.tokenizer.detokenize import StopMatcher, StreamDecoder, decode
from minisgl.tokenizer.server import TokenizerWorker
from minisgl.tokenizer.tokenize import PromptError, Tokenizer
from minisgl.utils.hf import load_tokenizer

TEXT = "页表 and 🎉👩‍💻 池"


@pytest.fixture(scope="module")
def tokenizer(model_folder: Path) -> Any:
    return load_tokenizer(model_folder)


def test_wherever_the_answer_ends_its_pieces_are_its_text(tokenizer: Any) -> None:
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    for end in range(len(ids) + 1):
        decoder = StreamDecoder(tokenizer)
        pieces = [decoder.push(token) for token in ids[:end]]
        assert not any("\ufffd" in piece for piece in pieces)
        assert "".join([*pieces, decoder.finish()]) == decode(tokenizer, ids[:end])


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_stop_text_is_found_across_pieces(cut: int) -> None:
    matcher = StopMatcher(["</s>", "<b>"])
    text = "ab</s>c"
    first, stopped = matcher.push(text[:cut])
    assert not stopped or cut > 5
    second, stopped = matcher.push(text[cut:]) if not stopped else ("", True)
    assert (first + second, stopped) == ("ab", True)


def test_what_only_began_like_a_stop_text_is_sent_in_the_end() -> None:
    matcher = StopMatcher(["</s>"])
    assert matcher.push("a<") == ("a", False)
    assert matcher.push("b</") == ("<b", False)
    assert matcher.finish() == "</"


def test_a_chat_is_laid_out_by_the_models_template(tokenizer: Any) -> None:
    chat = [{"role": "user", "content": "?"}]
    prompts = Tokenizer(tokenizer)
    asked = prompts.lay_out(chat, {})
    assert asked.startswith(prompts.lay_out(chat, {"add_generation_prompt": False}))
    assert "?" in asked
    with pytest.raises(PromptError, match="cannot set tokenize"):
        prompts.lay_out(chat, {"tokenize": True})


def test_a_request_goes_to_the_scheduler_and_its_text_comes_back(tokenizer: Any) -> None:
    worker = TokenizerWorker(tokenizer)
    ((user,), replies) = worker.process([TokenizeMsg(1, "页表", SamplingParams())])
    assert isinstance(user, UserMsg)
    assert user.input_ids.tolist() == tokenizer.encode("页表")
    assert replies == []
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    steps = [DetokenizeMsg(1, token, at == len(ids) - 1) for at, token in enumerate(ids)]
    _, replies = worker.process(steps)
    assert "".join(reply.text for reply in replies) == TEXT
    assert [reply.finished for reply in replies] == [False] * (len(replies) - 1) + [True]


def test_an_abort_follows_its_request_and_nothing_follows_an_abort(tokenizer: Any) -> None:
    worker = TokenizerWorker(tokenizer)
    to_scheduler, _ = worker.process([TokenizeMsg(1, "x", SamplingParams()), AbortMsg(1)])
    assert [type(message) for message in to_scheduler] == [UserMsg, AbortBackendMsg]
    assert worker.process([DetokenizeMsg(1, 50, False), AbortMsg(1)]) == ([], [])
