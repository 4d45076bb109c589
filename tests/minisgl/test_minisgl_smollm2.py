"""A real model, SmolLM2, token for token with transformers in float32: plain text, numbers, code and chat."""

from pathlib import Path
from typing import Any

import pytest

from minisgl.utils.hf import load_tokenizer
from tests.minisgl.greedy import build_engine, generate
from tools.models import MIN_GAP, cached, greedy, load_reference

TEXTS = [
    "The capital of France is",
    "1, 2, 3, 4, 5, 6,",
    "def fibonacci(n):\n",
    "The three primary colors are",
]
QUESTIONS = ["What is the capital of France?", "What is 7 + 5?"]
NEW_TOKENS = 12


def prompts(tokenizer: Any) -> list[list[int]]:
    chats = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True, return_dict=False
        )
        for question in QUESTIONS
    ]
    return [tokenizer(text).input_ids for text in TEXTS] + chats


@pytest.fixture(scope="module")
def reference() -> tuple[Path, list[list[int]], list[list[int]]]:
    """Folder, prompts, and what transformers generates for them; no step of it is a near tie."""
    folder = cached("smollm2")
    asked = prompts(load_tokenizer(folder))
    model = load_reference(folder)
    answers = []
    for prompt in asked:
        tokens, gap = greedy(model, prompt, NEW_TOKENS)
        assert gap > MIN_GAP, f"prompt {prompt} comes to a near tie and proves nothing"
        answers.append(tokens)
    return folder, asked, answers


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "page_size"), [("torch", 1), ("fa,fi", 4)])
def test_generates_what_transformers_does(
    reference: tuple[Path, list[list[int]], list[list[int]]], backend: str, page_size: int
) -> None:
    folder, asked, answers = reference
    engine = build_engine(folder, backend, page_size)
    assert generate(engine, asked, NEW_TOKENS) == answers
    engine.shutdown()
    text = load_tokenizer(folder).decode(answers[0])
    assert text.startswith(" Paris.")
