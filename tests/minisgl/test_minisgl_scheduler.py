"""What a scheduler must get right. Each test's docstring names the bug that it has been in other engines."""

import gc
import weakref
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from minisgl.core import SamplingParams
from minisgl.message.backend import BatchBackendMsg, ExitMsg, UserMsg
from minisgl.scheduler.utils import ChunkedReq
from tests.minisgl.scheduling import EOS, VOCAB, Driven, write_small_model
from tools.models import greedy, load_reference

PROMPT = [5, 9, 30, 12, 7, 22, 8, 31, 17, 6, 25, 11]


reference = cache(load_reference)


def answer(folder: Path, prompt: list[int], tokens: int) -> list[int]:
    """What transformers says, end-of-text tokens ignored."""
    said, gap = greedy(reference(folder), prompt, tokens)
    assert gap > 1e-4, "a near tie proves nothing"
    return said


@pytest.mark.parametrize("page_size", [1, 4])
def test_a_prompt_that_is_cached_whole_still_computes_a_token(small_model: Path, page_size: int) -> None:
    """Bug: the whole prompt matches, nothing is left to compute, and there are no logits to sample from."""
    driven = Driven(
        small_model, page_size=page_size, num_page_override=64 // page_size, max_seq_len_override=32
    )
    driven.ask(0, PROMPT, max_tokens=3, ignore_eos=True)
    driven.run()
    driven.ask(1, PROMPT, max_tokens=3, ignore_eos=True)
    driven.run()
    assert driven.told[1] == driven.told[0]
    # Whole pages of all but the last token: 11 of 12 with pages of 1, 8 with pages of 4.
    assert driven.ended[1].cached_tokens == (len(PROMPT) - 1) // page_size * page_size


@pytest.mark.parametrize("page_size", [1, 4])
def test_equal_prompts_of_one_step_keep_one_copy_and_both_rows_point_at_it(
    small_model: Path, page_size: int
) -> None:
    """Bug: the second request's duplicates are freed although its row goes on pointing at them."""
    driven = Driven(small_model, page_size=page_size, num_page_override=128 // page_size)
    before = driven.cache_manager.free_pages
    for uid in (0, 1):
        driven.ask(uid, PROMPT, max_tokens=8, ignore_eos=True)
    driven.step()
    assert [len(flight.batch.reqs) for flight in driven._in_flight] == [2], "both in one step, or no test"
    first, second = driven.pages_of(0), driven.pages_of(1)
    whole = len(PROMPT) // page_size * page_size
    assert first[:whole] == second[:whole]
    assert before - driven.cache_manager.free_pages == whole // page_size + 2 * (len(PROMPT) % page_size > 0)
    driven.run()
    assert driven.told[0] == driven.told[1] == answer(small_model, PROMPT, 8)


def test_a_long_common_beginning_is_computed_once(small_model: Path) -> None:
    """Bug (of speed): requests that arrive together all compute the prefix that they share."""
    stem = [(7 * i) % (VOCAB - 4) + 4 for i in range(48)]
    driven = Driven(small_model, overlap=False)
    for uid in range(4):
        driven.ask(uid, [*stem, 4 + uid, 9], max_tokens=4, ignore_eos=True)
    driven.step()
    assert driven.told.keys() == {0}
    driven.step()
    assert driven.told.keys() == {0, 1, 2, 3}
    driven.run()
    assert [driven.ended[uid].cached_tokens for uid in range(4)] == [0, 48, 48, 48]
    for uid in range(4):
        assert driven.told[uid] == answer(small_model, [*stem, 4 + uid, 9], 4)


def batches(driven: Driven) -> list[tuple[str, list[int]]]:
    """Phase and request numbers of each batch, noted as they are launched."""
    seen: list[tuple[str, list[int]]] = []
    launch = driven._launch

    def noted(batch: Any) -> Any:
        seen.append((batch.phase, [req.uid for req in batch.reqs]))
        return launch(batch)

    driven._launch = noted  # type: ignore[method-assign]
    return seen


def test_batches_are_in_order_of_arrival(small_model: Path) -> None:
    """Bug: running requests in a set, whose order differs from process to process (and ranks disagree)."""
    driven = Driven(small_model, max_extend_tokens=14)
    seen = batches(driven)
    order = [50, 3, 41, 7, 12, 28]
    for place, uid in enumerate(order):
        driven.ask(uid, PROMPT[: 3 + place], max_tokens=6 + place, ignore_eos=True)
        driven.step()
    driven.run()
    for _, uids in seen:
        assert uids == sorted(uids, key=order.index)
    assert any(len(uids) == 6 for _, uids in seen)


def test_who_finishes_its_prompt_later_keeps_its_place(small_model: Path) -> None:
    """Bug: order by when the prompt was done, which chunks and waiting change."""
    stem = [(5 * i) % (VOCAB - 4) + 4 for i in range(40)]
    driven = Driven(small_model)
    seen = batches(driven)
    driven.ask(0, stem, max_tokens=8, ignore_eos=True)
    driven.ask(1, [*stem, 6], max_tokens=8, ignore_eos=True)  # waits one step for the prefix of 0
    driven.ask(2, [9, 8, 7], max_tokens=8, ignore_eos=True)
    driven.run()
    assert seen[:3] == [("prefill", [0, 2]), ("prefill", [1]), ("decode", [0, 1, 2])]


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("max_tokens", [1, 2, 5])
def test_ends_exactly_at_its_last_token(small_model: Path, overlap: bool, max_tokens: int) -> None:
    """Bug: under overlap device_len is a step ahead, and asking it ends the request one token early."""
    wanted = answer(small_model, PROMPT, 8)
    driven = Driven(small_model, overlap=overlap)
    driven.ask(0, PROMPT, max_tokens=max_tokens, ignore_eos=True)
    driven.ask(1, PROMPT[:5], max_tokens=8, ignore_eos=True)
    driven.run()
    assert driven.told[0] == wanted[:max_tokens]
    assert [m.finished for m in driven.outbox if m.uid == 0] == [False] * (max_tokens - 1) + [True]
    assert driven.ended[0].finish_reason == "length"


@pytest.mark.parametrize("overlap", [False, True])
def test_nothing_is_said_after_an_end_of_text(small_model: Path, overlap: bool) -> None:
    """Bug: the extra step that overlap has launched by then is sent to the client as well."""
    # As far as the first token that was not said before; made a stop token, it is met at that step.
    said = answer(small_model, PROMPT, 12)
    place = next(i for i in range(2, 12) if said[i] not in said[:i])
    driven = Driven(small_model, overlap=overlap)
    driven.ask(0, PROMPT, max_tokens=12, ignore_eos=True, stop_token_ids=(said[place],))
    driven.run()  # Driven fails on anything after the end
    assert driven.told[0] == said[: place + 1]
    assert driven.ended[0].finish_reason == "stop"


def test_a_row_is_not_reused_while_its_batch_is_in_flight(small_model: Path) -> None:
    """Bug: the row and pages of a request that ended go to the next one while the extra step still writes."""
    said = answer(small_model, PROMPT, 12)
    place = next(i for i in range(2, 12) if said[i] not in said[:i])
    driven = Driven(small_model, overlap=True, max_running_req=1)
    driven.ask(0, PROMPT, max_tokens=12, ignore_eos=True, stop_token_ids=(said[place],))
    driven.ask(1, PROMPT[:3], max_tokens=2, ignore_eos=True)
    while 0 not in driven.ended:
        driven.step()
    (flight,) = driven._in_flight
    assert [req.uid for req in flight.batch.reqs] == [0], "an extra step is in flight, or no test"
    assert driven.table_manager.available_size == 0
    assert driven.cache_manager.available_pages < driven.engine.num_pages
    driven.run()
    assert driven.told[1] == answer(small_model, PROMPT[:3], 2)


def test_eos_may_be_a_list(tmp_path: Path) -> None:
    """Bug: only config.json's single number is compared, and chat models never stop."""
    said = answer(write_small_model(tmp_path / "one"), PROMPT, 12)
    place = next(i for i in range(2, 12) if said[i] not in said[:i])
    driven = Driven(write_small_model(tmp_path / "more", eos=[EOS, said[place]]))
    assert driven.finish_rules.eos == {EOS, said[place]}
    driven.ask(0, PROMPT, max_tokens=12)
    driven.ask(1, PROMPT, max_tokens=12, ignore_eos=True)
    driven.run()
    assert driven.told[0] == said[: place + 1]
    assert driven.told[1] == said


@pytest.mark.parametrize(
    ("prompt", "params", "word"),
    [
        ([], {}, "empty"),
        ([5] * 32, {}, "at most 31"),
        ([5] * 500, {}, "500 tokens"),
        ([5, VOCAB], {}, "outside of 0 .. 39"),
        ([-1, 5], {}, "outside of 0 .. 39"),
        ([5], {"n": 2}, "one answer"),
    ],
)
def test_what_can_never_run_is_refused_at_once_with_a_reply(
    small_model: Path, prompt: list[int], params: dict[str, Any], word: str
) -> None:
    """Bug: it waits for pages that will never be free, holding up everybody, or is dropped without a word."""
    driven = Driven(small_model, num_page_override=8, page_size=4)
    driven.ask(7, [5] * 20, max_tokens=10, ignore_eos=True)
    driven.step()
    driven.ask(8, prompt, **params)
    driven.step()
    assert driven.ended[8].finish_reason == "error"
    assert word in str(driven.ended[8].error)
    driven.run()
    assert driven.ended[7].finish_reason == "length"


def test_an_answer_longer_than_the_room_ends_with_length(small_model: Path) -> None:
    driven = Driven(small_model, num_page_override=8, page_size=4)
    driven.ask(0, [5] * 31, max_tokens=1000, ignore_eos=True)
    driven.ask(1, [5] * 20, max_tokens=1000, ignore_eos=True)
    driven.run()
    assert [len(driven.told[uid]) for uid in (0, 1)] == [1, 12]
    assert {driven.ended[uid].finish_reason for uid in (0, 1)} == {"length"}


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("cache_type", ["naive", "radix"])
@pytest.mark.parametrize("steps", range(12))
def test_an_abort_at_any_moment_frees_once(
    small_model: Path, overlap: bool, cache_type: str, steps: int
) -> None:
    """Bug: aborted in the middle of a prefill, or with a batch in flight, pages are freed twice or never."""
    driven = Driven(
        small_model,
        overlap=overlap,
        cache_type=cache_type,
        max_extend_tokens=5,
        page_size=4,
        num_page_override=12,
    )
    driven.ask(0, PROMPT, max_tokens=6, ignore_eos=True)
    driven.ask(1, [*PROMPT, 9, 9], max_tokens=6, ignore_eos=True)
    driven.ask(2, PROMPT[:3], max_tokens=6, ignore_eos=True)
    for _ in range(steps):
        driven.step()
    driven.abort(1)
    driven.abort(1)
    driven.abort(99)
    driven.step()
    assert driven.ended[1].finish_reason == "abort" or steps > 9
    driven.run()  # everything is free at its end
    assert driven.told[0] == answer(small_model, PROMPT, 6)
    assert driven.told[2] == answer(small_model, PROMPT[:3], 6)


def test_a_number_is_free_again_after_its_end(small_model: Path) -> None:
    driven = Driven(small_model)
    driven.ask(0, PROMPT, max_tokens=3, ignore_eos=True)
    driven.step()
    driven.ask(0, PROMPT, max_tokens=3)
    with pytest.raises(RuntimeError, match="request 0 came twice"):
        driven.step()
    driven.run()
    driven.ended.clear()
    driven.ask(0, PROMPT, max_tokens=3, ignore_eos=True)
    driven.run()
    assert 0 in driven.ended


def test_a_request_waits_until_its_pages_can_be_kept(small_model: Path) -> None:
    """Bug: let in on what its prompt needs, it runs out of pages in the middle of its answer."""
    driven = Driven(small_model, num_page_override=32, cache_type="naive")
    seen = batches(driven)
    driven.ask(0, PROMPT, max_tokens=12, ignore_eos=True)  # 12 + 11 of 32 pages in the end
    driven.ask(1, PROMPT[:4], max_tokens=10, ignore_eos=True)  # 13: more than the other leaves
    driven.run()
    assert seen[0] == ("prefill", [0])
    assert ("decode", [0, 1]) not in seen
    assert driven.told[1] == answer(small_model, PROMPT[:4], 10)


def test_cached_pages_make_room(small_model: Path) -> None:
    driven = Driven(small_model, num_page_override=32)
    for uid in range(6):
        driven.ask(uid, [4 + uid, *PROMPT], max_tokens=12, ignore_eos=True)
        driven.run()
        assert driven.told[uid] == answer(small_model, [4 + uid, *PROMPT], 12)
    assert driven.cache_manager.prefix_cache.size_info().evictable <= 32


def test_pages_that_are_matched_are_locked_before_they_are_counted(small_model: Path) -> None:
    """Bug: matched pages are counted as evictable too, the request is let in, and evicts its own prefix."""
    driven = Driven(small_model, num_page_override=24)
    driven.ask(0, PROMPT, max_tokens=1, ignore_eos=True)
    driven.run()
    assert driven.cache_manager.prefix_cache.size_info().evictable == 12
    # Running, it has 2 of the 12 free pages and keeps 8 for itself.
    driven.ask(1, [39, 38], max_tokens=9, ignore_eos=True)
    driven.step()
    # 11 tokens are cached. It lacks 12, and 8 are kept for the other: 10 are free, and 1 could be evicted.
    driven.ask(2, PROMPT, max_tokens=12, ignore_eos=True)
    driven.step()
    assert [one.uid for one in driven.prefill_manager.pending] == [2]
    driven.run()
    assert driven.told[2] == answer(small_model, PROMPT, 12)


@pytest.mark.parametrize("budget", [1, 3, 8])
@pytest.mark.parametrize("overlap", [False, True])
def test_chunks_take_turns_with_decoding(small_model: Path, budget: int, overlap: bool) -> None:
    """Bug: a long prompt's chunks follow one another, and everybody else's next token waits for all of them."""
    driven = Driven(small_model, max_extend_tokens=budget, overlap=overlap, cache_type="naive")
    driven.ask(0, PROMPT[:budget], max_tokens=40, ignore_eos=True)
    driven.step()
    seen = batches(driven)
    driven.ask(1, PROMPT, max_tokens=4, ignore_eos=True)
    driven.run()
    chunks = [place for place, (phase, _) in enumerate(seen) if phase == "prefill"]
    assert len(chunks) == -(-len(PROMPT) // budget)
    assert all(later - earlier == 2 for earlier, later in pairwise(chunks))
    assert driven.told[1] == answer(small_model, PROMPT, 4)


def test_a_chunk_is_never_sampled_from(small_model: Path) -> None:
    """Bug: the token sampled at a chunk's end overwrites the prompt's next token, or reaches the client."""
    driven = Driven(small_model, max_extend_tokens=5)
    driven.ask(0, PROMPT, max_tokens=4, ignore_eos=True)
    driven.step()
    (chunk,) = driven.prefill_manager.chunks
    assert isinstance(chunk, ChunkedReq)
    assert chunk.cached_len == 5
    with pytest.raises(RuntimeError, match="no next token"):
        chunk.append_host(torch.zeros(1, dtype=torch.int32))
    driven.run()
    assert driven.told[0] == answer(small_model, PROMPT, 4)


def test_tensors_of_a_batch_in_flight_are_kept(small_model: Path) -> None:
    """Bug: they are let go once the forward is launched, and on a GPU their memory is given to the next batch's
    while the engine's stream still reads them (an index out of bounds, now and then)."""
    driven = Driven(small_model, overlap=True)
    made: list[weakref.ref[torch.Tensor]] = []

    def noted(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(batch: Any) -> Any:
            places = method(batch)
            made.extend(weakref.ref(one) for one in (places if isinstance(places, tuple) else (places,)))
            return places

        return call

    driven._token_places = noted(driven._token_places)  # type: ignore[method-assign]
    driven._written_places = noted(driven._written_places)  # type: ignore[method-assign]
    driven.ask(0, PROMPT, max_tokens=4, ignore_eos=True)
    for _ in range(3):
        made.clear()
        driven.step()
        gc.collect()
        assert len(made) == 3
        assert all(one() is not None for one in made)
    driven.run()


def test_messages_in_one_batch_and_the_end_of_the_loop(small_model: Path) -> None:
    driven = Driven(small_model)
    ids = torch.tensor(PROMPT, dtype=torch.int32)
    driven.inbox.append(BatchBackendMsg([UserMsg(uid, ids, SamplingParams(max_tokens=2)) for uid in (0, 1)]))
    driven.run()
    driven.inbox.append(ExitMsg())
    driven.run_forever()
    assert set(driven.ended) == {0, 1}


def test_the_check_of_pages_finds_what_is_wrong(small_model: Path) -> None:
    """The invariant that all these tests lean on: lost, doubled and misdirected pages are all found."""

    def busy() -> Driven:
        driven = Driven(small_model, check_pages=False)
        driven.ask(0, PROMPT, max_tokens=8, ignore_eos=True)
        for _ in range(3):
            driven.step()
        driven.check_integrity()
        return driven

    driven = busy()
    driven.cache_manager._free = driven.cache_manager._free[1:]
    with pytest.raises(RuntimeError, match="belong to nobody"):
        driven.check_integrity()
    driven.shutdown()

    driven = busy()
    driven.cache_manager._give_back(driven.engine.page_table[driven._on_device[0].table_idx, 12:13])
    with pytest.raises(RuntimeError, match="belongs to the free pages and to request 0"):
        driven.check_integrity()
    driven.shutdown()

    driven = busy()
    driven.engine.page_table[driven._on_device[0].table_idx, 2] = 200
    with pytest.raises(RuntimeError, match="does not point at the pages it has locked"):
        driven.check_integrity()
