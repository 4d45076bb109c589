"""Token for token with transformers, in float32, greedy: every backend, page size and way through the
engine.
"""

from pathlib import Path

import pytest

from tests.minisgl.greedy import build_engine, generate
from tools.models import MIN_GAP, cached, greedy, load_reference

PROMPTS = [
    [40, 71, 82, 303, 9],
    [17, 256, 301, 444, 120, 33, 78, 402, 11, 90, 265, 18],
    [499],
    [5, 6, 7, 8, 9, 10, 11, 12],
]
NEW_TOKENS = 16
BACKENDS = [
    ("torch", 1),
    ("torch", 4),
    ("torch", 16),
    ("fi", 1),
    ("fi", 4),
    ("fa", 1),
    ("fa", 4),
    ("fa", 16),
    ("fa,fi", 4),
]


@pytest.fixture(scope="module", params=["qwen3", "llama"])
def reference(request: pytest.FixtureRequest) -> tuple[Path, list[list[int]]]:
    """A model and what transformers generates with it; no step of it is a near tie."""
    folder = cached(request.param)
    model = load_reference(folder)
    wanted = []
    for prompt in PROMPTS:
        tokens, gap = greedy(model, prompt, NEW_TOKENS)
        assert gap > MIN_GAP, f"prompt {prompt} comes to a near tie and proves nothing"
        wanted.append(tokens)
    return folder, wanted


@pytest.mark.parametrize(("backend", "page_size"), BACKENDS)
def test_generates_what_transformers_does(
    reference: tuple[Path, list[list[int]]], backend: str, page_size: int
) -> None:
    folder, wanted = reference
    engine = build_engine(folder, backend, page_size)
    assert generate(engine, PROMPTS, NEW_TOKENS) == wanted
    engine.shutdown()


@pytest.mark.parametrize(("backend", "page_size"), BACKENDS)
def test_cached_prefixes_change_nothing(
    reference: tuple[Path, list[list[int]]], backend: str, page_size: int
) -> None:
    folder, wanted = reference
    engine = build_engine(folder, backend, page_size)
    assert generate(engine, PROMPTS, NEW_TOKENS, cached_lens=[4, 7, 0, 3]) == wanted
    engine.shutdown()


@pytest.mark.parametrize(("backend", "page_size"), BACKENDS)
def test_padded_decode_changes_nothing(
    reference: tuple[Path, list[list[int]]], backend: str, page_size: int
) -> None:
    folder, wanted = reference
    engine = build_engine(folder, backend, page_size)
    assert generate(engine, PROMPTS, NEW_TOKENS, padding=3) == wanted
    engine.shutdown()


def test_a_request_alone_gets_what_it_gets_in_company(reference: tuple[Path, list[list[int]]]) -> None:
    folder, wanted = reference
    engine = build_engine(folder, "torch", 4)
    assert [generate(engine, [prompt], NEW_TOKENS)[0] for prompt in PROMPTS] == wanted
    engine.shutdown()
