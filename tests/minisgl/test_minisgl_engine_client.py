"""The front end's end of the queues: who asked is told, once, and nobody waits for ever."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from minisgl.core import SamplingParams
from minisgl.distributed import DistributedInfo
from minisgl.message.frontend import BatchFrontendMsg, StatusReply, UserReply
from minisgl.message.tokenizer import TOKENIZER_TYPES, AbortMsg, AskStatusMsg, BaseTokenizerMsg, TokenizeMsg
from minisgl.message.utils import pack, reader
from minisgl.server.args import ServerArgs
from minisgl.server.launch import EngineClient, EngineDied, TooManyRequests, Workers
from minisgl.shell import Shell
from minisgl.utils.mp import ZmqPullQueue, ZmqPushQueue

PARAMS = SamplingParams(seed=1)


class Engine:
    """The other end, played by the test."""

    def __init__(self, config: ServerArgs) -> None:
        self._inlets = [
            ZmqPullQueue[BaseTokenizerMsg](address, True, reader(TOKENIZER_TYPES))
            for address in config.tokenizer_addresses
        ]
        self._outlet: ZmqPushQueue[object] = ZmqPushQueue(config.address("frontend"), False, pack)

    def heard(self, tokenizer: int = 0) -> BaseTokenizerMsg:
        return self._inlets[tokenizer].get(5.0)

    def heard_nothing(self) -> bool:
        return all(inlet.drain(0.05) == [] for inlet in self._inlets)

    def say(self, *messages: object) -> None:
        self._outlet.put(messages[0] if len(messages) == 1 else BatchFrontendMsg(list(messages)))

    def close(self) -> None:
        for queue in (*self._inlets, self._outlet):
            queue.close()


Pair = tuple[EngineClient, Engine]


@pytest.fixture
def config() -> Iterator[ServerArgs]:
    with TemporaryDirectory(prefix="c-") as folder:
        yield ServerArgs(
            "unused", DistributedInfo(0, 1), torch.float32, socket_folder=folder, max_running_req=3,
            max_queued_requests=1, reply_timeout=0.3,
        )  # fmt: skip


@asynccontextmanager
async def connected(config: ServerArgs) -> AsyncIterator[Pair]:
    client, engine = EngineClient(config), Engine(config)
    listening = asyncio.create_task(client.listen())
    try:
        yield client, engine
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        engine.close(), client.close()


def run(config: ServerArgs, scenario: Callable[[EngineClient, Engine], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20.0), connected(config) as pair:
            await scenario(*pair)

    asyncio.run(main())


def reply(uid: int, text: str, finished: bool = False) -> UserReply:
    return UserReply(uid, text, finished, "stop" if finished else None)


def test_choices_are_requests_of_their_own_and_come_back_as_choices(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        call = client.submit(["a", "b"], SamplingParams(seed=1, n=2), {"x": 1})
        asked = [engine.heard() for _ in range(4)]
        assert asked == [
            TokenizeMsg(uid, prompt, SamplingParams(seed=1, n=2).choice(choice), {"x": 1})
            for uid, (prompt, choice) in enumerate([("a", 0), ("a", 1), ("b", 0), ("b", 1)])
        ]
        engine.say(reply(3, "d"), reply(0, "a", True), reply(99, "nobody's"))
        engine.say(reply(2, "c", True), reply(1, "b", True), reply(3, "D", True))
        got = [(index, piece.text) async for index, piece in call]
        assert got == [(3, "d"), (0, "a"), (2, "c"), (1, "b"), (3, "D")]
        call.close()
        assert engine.heard_nothing()  # all of them have ended: there is nothing to abort

    run(config, scenario)


def test_closing_a_call_aborts_what_has_not_ended_once(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        call = client.submit(["a"], SamplingParams(n=3))
        for _ in range(3):
            engine.heard()
        engine.say(reply(1, "x", True))
        assert (await anext(call))[0] == 1
        call.close(), call.close()
        assert [engine.heard(), engine.heard()] == [AbortMsg(0), AbortMsg(2)]
        assert engine.heard_nothing()
        assert [piece async for piece in call] == []
        engine.say(reply(0, "late"))  # is nobody's
        await asyncio.sleep(0.05)
        client.submit(["a"], SamplingParams(n=4))  # their places are free again

    run(config, scenario)


def test_messages_of_a_request_take_one_way(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        call = client.submit(["a"], SamplingParams(n=3))
        call.close()
        assert [type(engine.heard(0)) for _ in range(4)] == [TokenizeMsg, TokenizeMsg, AbortMsg, AbortMsg]
        assert [type(engine.heard(1)) for _ in range(2)] == [TokenizeMsg, AbortMsg]

    run(replace(config, num_tokenizer=2), scenario)


def test_who_comes_when_all_places_are_taken_is_turned_away(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        client.submit(["a"], SamplingParams(n=3))
        with pytest.raises(TooManyRequests, match="3 requests are running or waiting and 2 more"):
            client.submit(["a", "b"], PARAMS)
        client.submit(["a"], PARAMS)
        with pytest.raises(TooManyRequests):
            client.submit(["a"], PARAMS)
        engine.say(reply(3, "", True))
        await asyncio.sleep(0.1)
        client.submit(["a"], PARAMS)

    run(config, scenario)


def test_more_than_there_are_places_is_refused_for_good(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        with pytest.raises(ValueError, match="6 answers are asked for at once; the server takes 4"):
            client.submit(["a", "b"], SamplingParams(n=3))
        assert engine.heard_nothing()

    run(config, scenario)


def test_a_reply_that_cannot_be_read_is_the_end_for_everybody(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        call = client.submit(["a"], PARAMS)
        engine.say(AbortMsg(0))  # no message for the front end
        with pytest.raises(EngineDied, match="replies cannot be read: a message of type 'AbortMsg'"):
            await anext(call)

    run(config, scenario)


def test_what_cannot_be_sent_takes_no_place(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        for prompt in ("\ud800", [{"__type__": "x"}]):
            with pytest.raises(ValueError, match=r"surrogate|underscores"):
                client.submit(["fine", prompt], PARAMS)  # type: ignore[list-item]
            uid = engine.heard().uid  # type: ignore[attr-defined]
            assert engine.heard() == AbortMsg(uid)
        assert engine.heard_nothing()
        client.submit(["a"], SamplingParams(n=4))

    run(config, scenario)


def test_an_engine_that_says_nothing_is_not_waited_for_for_ever(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        with pytest.raises(TimeoutError):
            await anext(client.submit(["a"], PARAMS))
        with pytest.raises(TimeoutError):
            await client.status(0.1)
        engine.say(StatusReply(1, {"running": 0}))  # too late: dropped
        await asyncio.sleep(0.05)

    run(config, scenario)


def test_the_status_is_asked_and_answered(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        asking = asyncio.create_task(client.status(5.0))
        await asyncio.sleep(0.05)
        assert engine.heard() == AskStatusMsg(0)
        engine.say(StatusReply(0, {"running": 7}))
        assert await asking == {"running": 7}

    run(config, scenario)


def test_everybody_is_told_when_the_engine_dies(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        calls = [client.submit(["a"], PARAMS) for _ in range(2)]
        waiting = [asyncio.create_task(anext(call)) for call in calls]
        waiting.append(asyncio.create_task(client.status(5.0)))  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        client.fail("it broke")
        client.fail("and again")
        for task in waiting:
            with pytest.raises(EngineDied, match="it broke"):
                await task
        with pytest.raises(EngineDied, match="it broke"):
            client.submit(["a"], PARAMS)
        with pytest.raises(EngineDied, match="it broke"):
            await client.status(5.0)

    run(config, scenario)


def test_a_tokenizer_that_takes_nothing_is_as_good_as_dead(
    config: ServerArgs, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        call = client.submit(["a"], PARAMS)
        monkeypatch.setattr("minisgl.server.launch.SEND_S", 0.05)
        monkeypatch.setattr(ZmqPushQueue, "put", full)
        with pytest.raises(EngineDied, match="nobody takes anything"):
            client.submit(["b"], PARAMS)
        call.close()  # cannot tell anybody, and does not fail over it
        with pytest.raises(EngineDied):
            client.submit(["c"], PARAMS)

    def full(queue: ZmqPushQueue[object], item: object, timeout_s: float) -> None:
        assert timeout_s == 0.05
        raise TimeoutError("nobody takes anything")

    run(config, scenario)


# -- the shell, on the same two ends ---------------------------------------------------------------------


def lines(*texts: str) -> Callable[[], Awaitable[str]]:
    left = list(texts)

    async def read() -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    return read


def test_the_shell_sends_the_conversation_so_far_and_forgets_it_when_told(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        shown: list[str] = []
        shell = Shell(
            client, lines("hi", " ", "/set seed 5", "more", "/reset", "anew", "/nonsense"), shown.append
        )
        talking = asyncio.create_task(shell.run())
        chats = []
        for uid, (first, rest) in enumerate([("he", "llo"), ("we", "ll"), ("o", "k")]):
            await asyncio.sleep(0.05)
            asked = engine.heard()
            assert isinstance(asked, TokenizeMsg)
            chats.append([turn["content"] for turn in asked.prompt])  # type: ignore[union-attr, index]
            assert asked.sampling_params.seed == (5 if uid else None)
            engine.say(reply(uid, first), reply(uid, rest, True))
        await talking
        assert chats == [["hi"], ["hi", "hello", "more"], ["anew"]]
        assert "".join(shown).startswith("hello\nwell\nok\n/reset")

    run(config, scenario)


def test_an_interrupted_answer_is_aborted_and_kept_as_far_as_it_came(config: ServerArgs) -> None:
    async def scenario(client: EngineClient, engine: Engine) -> None:
        shown: list[str] = []
        shell = Shell(client, lines("hi", "more", "/exit"), shown.append)
        assert not shell.interrupt()  # there is no answer to end
        talking = asyncio.create_task(shell.run())
        await asyncio.sleep(0.05)
        engine.heard()
        engine.say(reply(0, "hel"))
        await asyncio.sleep(0.05)
        assert shell.interrupt()
        await asyncio.sleep(0.05)
        assert engine.heard() == AbortMsg(0)
        asked = engine.heard()
        assert isinstance(asked, TokenizeMsg)
        assert [turn["content"] for turn in asked.prompt] == ["hi", "hel", "more"]  # type: ignore[union-attr, index]
        engine.say(UserReply(1, "", True, "error", error="too long"))
        await talking
        assert "".join(shown) == "hel [interrupted]\n! too long\n"

    run(config, scenario)


def test_the_folder_of_the_sockets_is_its_users_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory(prefix="c-") as folder:
        monkeypatch.setattr("tempfile.tempdir", folder)
        workers = Workers(ServerArgs("unused", DistributedInfo(0, 1), torch.float32))
        (made,) = Path(folder).iterdir()
        assert made.stat().st_mode & 0o077 == 0
        workers.stop()
        assert not made.exists()
