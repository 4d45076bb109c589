"""Text that is streamed: no piece is ever taken back, all of them joined are the decoded whole, and stop texts are
found wherever tokens happen to end.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from minisgl.core import SamplingParams
from minisgl.message.frontend import UserReply
from minisgl.message.tokenizer import DetokenizeMsg, TokenLogprobs
from minisgl.tokenizer.detokenize import AnswerStream, StopMatcher, StreamDecoder, decode, token_bytes
from minisgl.utils.hf import load_tokenizer
from tools.models import cached

TEXTS = [
    "",
    "plain words, and more of them.",
    "页表记着每个 token 的位置。",
    "🎉👩‍👩‍👧‍👦🏳️‍🌈 e\u0301 \u200d",
    "mixed 中文 and 🎉\n\n\ttabs  and   spaces ",
    "\ufffd a real replacement character \ufffd\ufffd",
    "<|im_end|> in the middle <|im_start|>",
]


def byte_level() -> Any:
    return load_tokenizer(cached("qwen3"))


def sentencepiece_like() -> Any:
    """As Llama 2's: a space is part of the word, the first one is dropped, and what has no token is bytes."""
    words = ["▁", "▁and", "▁a", "a", "b", "页", "表", "▁页", "e", "n", "d", ".", "\n"]
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    vocab |= {word: len(vocab) + at for at, word in enumerate(words)}
    tokenizer = Tokenizer(
        models.BPE(vocab, [("▁", "a"), ("▁", "页")], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


TOKENIZERS = {"byte-level": byte_level(), "byte-fallback": sentencepiece_like()}


@pytest.fixture(params=TOKENIZERS, scope="module")
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return TOKENIZERS[request.param]


def stream(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    decoder = StreamDecoder(tokenizer)
    return [*(decoder.push(token) for token in ids), decoder.finish()]


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_joined_are_the_whole_wherever_the_answer_ends(tokenizer: Any, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False)
    for end in range(len(ids) + 1):
        assert "".join(stream(tokenizer, ids[:end])) == decode(tokenizer, ids[:end])


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(list(TOKENIZERS)), st.lists(st.integers(0, 530), max_size=30))
def test_so_they_are_for_any_tokens_at_all(name: str, ids: list[int]) -> None:
    """Invalid bytes, special tokens, and numbers that the tokenizer does not have, as a model may have more."""
    tokenizer = TOKENIZERS[name]
    if name == "byte-fallback":  # its decoder has no answer to those
        ids = [token % len(tokenizer) for token in ids]
    assert "".join(stream(tokenizer, ids)) == decode(tokenizer, ids)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(3, 3 + 255), max_size=12), st.integers(3 + 256, 3 + 256 + 12))
def test_so_they_are_for_runs_of_byte_tokens(run: list[int], after: int) -> None:
    """A run of them that is not UTF-8 is replaced as a whole, the valid characters at its beginning too."""
    tokenizer = TOKENIZERS["byte-fallback"]
    for ids in (run, [*run, after], [after, *run, 2, *run, after]):
        assert "".join(stream(tokenizer, ids)) == decode(tokenizer, ids)


def test_no_piece_splits_a_character_and_none_waits_for_more_than_its_own() -> None:
    tokenizer = TOKENIZERS["byte-level"]
    text = "页🎉ab位"
    ids = tokenizer.encode(text, add_special_tokens=False)
    pieces = stream(tokenizer, ids)
    assert "\ufffd" not in "".join(pieces)
    for end, (piece, following) in enumerate(pairwise(pieces[:-1]), start=1):
        if piece and not following:  # a character has begun: it is out with the first token that completes it
            assert decode(tokenizer, ids[: end + 1]).endswith("\ufffd")
    assert pieces[-1] == ""


def test_an_answer_that_stops_inside_a_character_ends_as_it_decodes() -> None:
    tokenizer = TOKENIZERS["byte-level"]
    ids = tokenizer.encode("好🎉", add_special_tokens=False)[:-1]
    pieces = stream(tokenizer, ids)
    assert "".join(pieces[:-1]) == "好"
    assert pieces[-1] == "\ufffd"


def test_what_is_decoded_a_step_does_not_grow_with_the_answer() -> None:
    class Counting:
        all_special_ids = TOKENIZERS["byte-level"].all_special_ids
        longest = 0

        def decode(self, ids: Sequence[int], **options: Any) -> str:
            self.longest = max(self.longest, len(ids))
            return TOKENIZERS["byte-level"].decode(ids, **options)

        def convert_ids_to_tokens(self, token: int) -> str:
            return TOKENIZERS["byte-level"].convert_ids_to_tokens(token)

    counting = Counting()
    ids = TOKENIZERS["byte-level"].encode("页表 and 🎉 " * 100, add_special_tokens=False)
    assert "".join(stream(counting, ids)) == "页表 and 🎉 " * 100
    assert counting.longest < 12


# -- stop texts ------------------------------------------------------------------------------------------


def by_hand(text: str, stops: Sequence[str]) -> str:
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.text("ab", max_size=4), max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_a_stop_is_found_across_any_pieces(pieces: list[str], stops: list[str]) -> None:
    matcher = StopMatcher(stops)
    sent, text = "", ""
    for piece in pieces:
        text += piece
        free, stopped = matcher.push(piece)
        sent += free
        cut = by_hand(text, stops)
        assert cut.startswith(sent)
        if stopped:
            assert sent == cut
            return
        assert cut == text  # no stop so far
        held = text[len(sent) :]
        assert any(stop.startswith(held) for stop in stops) or not held  # nothing waits without reason
    assert sent + matcher.finish() == text


def answer(tokenizer: Any, ids: Sequence[int], params: SamplingParams, **last: Any) -> list[UserReply]:
    """The replies to tokens, of which the last one is the answer's last."""
    stream = AnswerStream(tokenizer, params)
    replies = []
    for at, token in enumerate(ids):
        finished = at == len(ids) - 1
        logprobs = TokenLogprobs(-1.0, ((token, -1.0), (0, -2.0))) if params.logprobs is not None else None
        reason = last.get("reason", "length") if finished else None
        piece = stream.push(
            DetokenizeMsg(9, token, finished, reason, prompt_tokens=3, cached_tokens=2, logprobs=logprobs)
        )
        replies += [piece.reply] if piece.reply else []
        if piece.ended_here:
            assert not finished
            break
    return replies


def test_a_stop_text_ends_the_answer_before_it_and_says_so() -> None:
    tokenizer = TOKENIZERS["byte-level"]
    ids = tokenizer.encode("页表记着位置🎉，然后", add_special_tokens=False)
    replies = answer(tokenizer, ids, SamplingParams(stop=("置🎉",)))
    assert "".join(reply.text for reply in replies) == "页表记着位"
    assert [reply.finished for reply in replies].count(True) == 1
    assert (replies[-1].finished, replies[-1].finish_reason) == (True, "stop")
    assert replies[-1].completion_tokens < len(ids)


def test_what_looked_like_a_stop_is_sent_when_the_answer_ends() -> None:
    tokenizer = TOKENIZERS["byte-level"]
    ids = tokenizer.encode("ab</", add_special_tokens=False)
    replies = answer(tokenizer, ids, SamplingParams(stop=("</s>",)))
    assert "".join(reply.text for reply in replies) == "ab</"
    assert replies[-1].finish_reason == "length"


def test_the_first_token_is_told_even_if_it_is_no_text_yet() -> None:
    tokenizer = TOKENIZERS["byte-level"]
    first = answer(tokenizer, tokenizer.encode("🎉", add_special_tokens=False), SamplingParams())[0]
    assert (first.text, first.completion_tokens, first.finished) == ("", 1, False)
    assert (first.prompt_tokens, first.cached_tokens) == (3, 2)


# -- log probabilities -----------------------------------------------------------------------------------


def test_every_token_is_reported_once_with_its_place_in_the_text() -> None:
    tokenizer = TOKENIZERS["byte-level"]
    text = "ab 页🎉"
    ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
    replies = answer(tokenizer, ids, SamplingParams(logprobs=2), reason="stop")
    reports = [report for reply in replies for report in reply.reports]
    assert len(reports) == len(ids)
    assert b"".join(report.token.data or b"" for report in reports[:-1]) == text.encode()
    for report, token in zip(reports, ids, strict=True):
        assert report.token.text == tokenizer.decode([token])
        assert [one.logprob for one in report.top] == [-1.0, -2.0]
    for report in reports[:-1]:
        if "\ufffd" not in report.token.text:
            assert text[report.offset :].startswith(report.token.text)
    assert reports[-1].token.text == "<|im_end|>"


def test_tokens_behind_a_stop_are_not_reported() -> None:
    tokenizer = TOKENIZERS["byte-level"]
    ids = tokenizer.encode("ab.页", add_special_tokens=False)
    replies = answer(tokenizer, ids, SamplingParams(logprobs=0, stop=(".",)))
    reports = [report for reply in replies for report in reply.reports]
    assert "".join(report.token.text for report in reports) == "ab"


@pytest.mark.parametrize("text", ["a", " ", "页", "🎉", "\n"])
def test_bytes_of_tokens_joined_are_the_text(tokenizer: Any, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False)
    joined = b"".join(token_bytes(tokenizer, token) or b"" for token in ids)
    assert joined.strip(b" ") == text.encode().strip(b" ")
    assert token_bytes(tokenizer, 151_000) == b""


def test_the_models_own_tokenizer_is_what_was_tested(tiny_qwen3: Path) -> None:
    assert load_tokenizer(tiny_qwen3).get_vocab() == TOKENIZERS["byte-level"].get_vocab()
