"""Chapter 21: the figures are what they say, and arrivals are what they are called."""

import asyncio
import json
import math
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import pytest
import torch

from minisgl.benchmark import Workload, percentile, poisson_arrivals, random_workload
from minisgl.benchmark.client import Report, Timing, run_client
from minisgl.benchmark.offline import run_offline
from minisgl.llm import LLM


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """The model is small and the machine may be busy: threads that wait for one another only slow it down."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_percentiles_lie_between_neighbours() -> None:
    values = [40.0, 10.0, 30.0, 20.0]
    assert [percentile(values, percent) for percent in (0, 50, 75, 100)] == [10, 25, 32.5, 40]
    assert percentile([7.0], 99) == 7
    for wrong in (([], 50), ([1.0], 101)):
        with pytest.raises(ValueError, match="percentile"):
            percentile(*wrong)


def test_arrivals_come_at_their_rate_and_know_nothing_of_one_another() -> None:
    times = list(islice(poisson_arrivals(50.0, seed=1), 5001))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(1 / 50, rel=0.05)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert deviation == pytest.approx(mean, rel=0.05)  # an exponential's is its mean
    assert list(islice(poisson_arrivals(math.inf), 3)) == [0, 0, 0]


def test_the_default_workload_is_the_official_one() -> None:
    workload = random_workload(256, (100, 1024), (100, 1024))
    assert sum(workload.output_lens) == 133_966
    assert {len(prompt) >= 100 for prompt in workload.prompts} == {True}
    shared = random_workload(3, (2, 4), (1, 1), shared_prefix=5)
    assert len({prompt[:5] for prompt in shared.prompts}) == 1
    assert len({prompt[5:] for prompt in shared.prompts}) == 3


def test_times_are_taken_from_the_right_moments() -> None:
    timing = Timing(sent=10.0, events=[10.5, 11.0, 12.5], output_tokens=5)
    assert (timing.ttft, timing.latency, timing.tpot) == (0.5, 2.5, 0.5)
    assert timing.gaps == [0.5, 1.5]
    assert Timing(0.0, [1.0], output_tokens=1).tpot is None
    report = Report((timing, Timing(0.0, [3.0], output_tokens=1), Timing(0.0, error="status 429")), wall=2.0)
    assert (report.output_per_s, report.requests_per_s) == (3.0, 1.0)
    assert report.goodput(ttft_s=1.0, tpot_s=1.0) == 0.5
    assert "not answered: status 429" in str(report)


async def _serve(chunks: list[bytes], status: str = "200 OK") -> Report:
    """One request to a server that answers with `chunks`, 50 ms apart."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
        )
        body = json.loads(await reader.readexactly(length))
        assert body["prompt"] == [1, 2]
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n".encode())
        for chunk in chunks:
            await asyncio.sleep(0.05)
            writer.write(chunk)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        return await run_client(f"http://127.0.0.1:{port}", Workload(((1, 2),), (4,)), timeout_s=20.0)


def event(**content: object) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"


PIECES = [event(choices=[{"text": "a"}]), event(choices=[{"text": "bcd"}])]
USAGE = event(choices=[], usage={"prompt_tokens": 2, "completion_tokens": 4})


def test_an_answer_is_timed_as_it_streams() -> None:
    (timing,) = asyncio.run(_serve([*PIECES, USAGE + b"data: [DONE]\n\n"])).timings
    assert timing.error is None
    assert (len(timing.events), timing.output_tokens, timing.prompt_tokens) == (2, 4, 2)
    assert 0.04 < timing.ttft < 5.0
    assert timing.tpot == pytest.approx(timing.gaps[0] / 3)


@pytest.mark.parametrize(
    ("chunks", "status", "said"),
    [
        (PIECES, "200 OK", "broke off"),
        ([b"the queue is full"], "429 Too Many Requests", "status 429: the queue is full"),
        ([event(error={"message": "died"})], "200 OK", "died"),
    ],
)
def test_an_answer_that_is_none_counts_as_none(chunks: list[bytes], status: str, said: str) -> None:
    report = asyncio.run(_serve(chunks, status))
    assert report.answered == []
    assert said in (report.timings[0].error or "")
    assert report.output_per_s == 0


def test_a_server_that_is_not_there_is_said_not_to_be() -> None:
    workload = random_workload(2, (1, 2), (1, 1))
    report = asyncio.run(run_client("http://127.0.0.1:9", workload, timeout_s=5.0))
    assert len(report.timings) == 2
    assert "Connect" in str(report)


def test_offline_counts_every_token_and_what_was_cached(model_folder: Path) -> None:
    workload = random_workload(3, (2, 4), (3, 3), vocab_size=400, shared_prefix=32)
    ticks: list[int] = []
    llm = LLM(str(model_folder), num_page_override=512)
    try:
        result = run_offline(llm, workload, temperature=0.0, on_token=lambda: ticks.append(1))
    finally:
        llm.shutdown()
    assert (result.requests, result.output_tokens, len(ticks)) == (3, 9, 9)
    assert result.prompt_tokens == sum(len(prompt) for prompt in workload.prompts)
    assert result.cached_tokens == 2 * 32
    assert result.output_per_s == 9 / result.seconds
