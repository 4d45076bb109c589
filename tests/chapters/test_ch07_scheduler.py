"""Chapter 7: requests come and go between steps, and each ends for the right reason."""

from collections.abc import Callable
from typing import Any

import pytest

A, B, C = [40, 71, 82, 303, 9], [17, 256, 301, 444, 120, 33, 78, 402], [5, 6, 7]

Drive = Callable[..., Any]


def test_a_request_joins_those_that_are_decoding(drive: Drive) -> None:
    scheduler = drive()
    scheduler.ask(0, A, 4)
    scheduler.ask(1, B, 7)
    scheduler.step()
    scheduler.step()
    scheduler.ask(2, C, 3)
    scheduler.step()  # its prompt
    scheduler.step()  # all three
    assert [len(scheduler.told[uid]) for uid in range(3)] == [3, 3, 2]
    scheduler.run()
    together = dict(scheduler.told)
    for uid, (prompt, tokens) in enumerate([(A, 4), (B, 7), (C, 3)]):
        alone = drive()
        alone.ask(uid, prompt, tokens)
        alone.run()
        assert alone.told[uid] == together[uid]


def test_why_an_answer_ends(drive: Drive) -> None:
    scheduler = drive()
    scheduler.ask(0, A, 6)
    scheduler.run()
    said = scheduler.told[0]
    assert scheduler.ended[0].finish_reason == "length"
    place = next(i for i in range(1, 6) if said[i] not in said[:i])
    scheduler.ask(1, A, 6, stop_token_ids=[said[place]])
    scheduler.ask(2, [], 6)
    scheduler.run()
    assert (scheduler.told[1], scheduler.ended[1].finish_reason) == (said[: place + 1], "stop")
    assert scheduler.ended[2].finish_reason == "error"


@pytest.mark.parametrize("steps", range(4))
def test_an_abort_takes_a_request_out(drive: Drive, steps: int) -> None:
    scheduler = drive()
    scheduler.ask(0, A, 5)
    scheduler.ask(1, B, 5)
    for _ in range(steps):
        scheduler.step()
    scheduler.abort(0)
    scheduler.run()
    assert scheduler.ended[0].finish_reason == "abort"
    assert len(scheduler.told[0]) == steps
    assert len(scheduler.told[1]) == 5


def test_the_decode_batch_keeps_the_order_of_arrival(drive: Drive) -> None:
    scheduler = drive()
    for uid in (30, 4, 17):
        scheduler.ask(uid, A, 6)
        scheduler.step()
    scheduler.step()
    assert [req.uid for req in scheduler.decode_manager.running] == [30, 4, 17]
    scheduler.run()


def test_generate_without_a_server(model_folder: Any) -> None:
    import torch

    from minisgl.core import SamplingParams
    from minisgl.llm import LLM

    llm = LLM(
        str(model_folder),
        device=torch.device("cpu"),
        num_page_override=64,
        max_seq_len_override=48,
        max_running_req=2,
        cache_type="naive",
        check_pages=True,
    )
    params = SamplingParams(max_tokens=3, ignore_eos=True)
    answers = llm.generate([A, B, C], params)
    assert [len(one["token_ids"]) for one in answers] == [3, 3, 3]
    assert answers[1] == llm.generate(B, params)[0]
    with pytest.raises(ValueError, match="prompt 1: the prompt has 90 tokens"):
        llm.generate([A, [5] * 90], params)
    llm.shutdown()
