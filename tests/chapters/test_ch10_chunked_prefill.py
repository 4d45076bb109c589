"""Chapter 10: a prompt in chunks says what it says in one piece, and lets others speak in between."""

from collections.abc import Callable
from typing import Any

import pytest

Drive = Callable[..., Any]
LONG = [(37 * i) % 480 + 5 for i in range(30)]


@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize("budget", [8, 13])
@pytest.mark.parametrize("overlap", [False, True])
def test_chunks_change_nothing_that_is_said(drive: Drive, page_size: int, budget: int, overlap: bool) -> None:
    whole = drive(page_size=page_size)
    whole.ask(0, LONG, 3)
    whole.run()
    chunked = drive(page_size=page_size, max_extend_tokens=budget, overlap=overlap)
    chunked.ask(0, LONG, 3)
    chunked.run()
    assert chunked.told == whole.told


def test_no_batch_is_larger_than_the_budget(drive: Drive) -> None:
    scheduler = drive(max_extend_tokens=8)
    sizes = []
    launch = scheduler._launch
    scheduler._launch = lambda batch: sizes.append([req.extend_len for req in batch.reqs]) or launch(batch)
    scheduler.ask(0, LONG[:6], 1)
    scheduler.ask(1, LONG[:11], 1)
    scheduler.run()
    assert sizes == [[6, 2], [8], [1]]


def test_who_decodes_is_not_held_up_by_all_chunks(drive: Drive) -> None:
    scheduler = drive(max_extend_tokens=8)
    scheduler.ask(0, [40, 71, 82], 12)
    scheduler.step()
    scheduler.ask(1, LONG, 2)
    for _ in range(8):
        scheduler.step()
    # Four chunks and, after each, a step of the other.
    assert [len(scheduler.told[uid]) for uid in (0, 1)] == [5, 2]
    scheduler.run()


@pytest.mark.parametrize("steps", range(1, 5))
@pytest.mark.parametrize("overlap", [False, True])
def test_an_abort_in_the_middle_of_a_prompt_frees_its_pages_once(
    drive: Drive, steps: int, overlap: bool
) -> None:
    scheduler = drive(max_extend_tokens=8, overlap=overlap, page_size=4)
    scheduler.ask(0, LONG, 3)
    for _ in range(steps):
        scheduler.step()
    scheduler.abort(0)
    scheduler.run()
    assert scheduler.ended[0].finish_reason == "abort"
    assert scheduler.told[0] == [] or steps == 4


def test_a_chunk_has_no_next_token(drive: Drive) -> None:
    scheduler = drive(max_extend_tokens=8)
    scheduler.ask(0, LONG, 3)
    scheduler.step()
    (chunk,) = scheduler.prefill_manager.chunks
    assert (chunk.cached_len, chunk.can_decode) == (8, False)
    with pytest.raises(RuntimeError, match="no next token"):
        chunk.append_host(chunk.input_ids[:1])
    # What was sampled at the chunk's end did not overwrite the prompt.
    assert scheduler.table_manager.token_pool[chunk.table_idx, : len(LONG)].tolist() == LONG
    scheduler.run()
