"""The processes of the engine, seen from the one that answers people: started, watched, spoken to, ended.

    front end (this process) --> tokenizer --> scheduler, first rank --> other ranks
              ^                      |  ^                |
              '----------------------'  '----------------'

Each arrow is a queue that keeps order. Whatever happens to one of the processes ends all of them, with its reason
told; and they end with this process, even if it is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from multiprocessing import connection
from typing import Any

import torch

from minisgl.core import SamplingParams
from minisgl.distributed.info import DistributedInfo
from minisgl.message.frontend import (
    FRONTEND_TYPES,
    BaseFrontendMsg,
    BatchFrontendMsg,
    StatusReply,
    UserReply,
    WorkerMsg,
)
from minisgl.message.tokenizer import AbortMsg, AskStatusMsg, TokenizeMsg
from minisgl.message.utils import each, pack, reader
from minisgl.server import process_context
from minisgl.server.args import Prompt, ServerArgs, parse_args
from minisgl.utils.hf import load_tokenizer
from minisgl.utils.logger import init_logger, setup_logging
from minisgl.utils.mp import ZmqAsyncPullQueue, ZmqPullQueue, ZmqPushQueue, let_last_words_out

logger = init_logger(__name__)

STOP_S = 5.0
LAST_WORDS_S = 2.0
IDLE_S = 5.0
SEND_S = 1.0  # for a tokenizer with a full queue to take something; the event loop stands still meanwhile


class EngineDied(RuntimeError):
    """A process of the engine has ended, or the server is ending; the text says why."""


class TooManyRequests(RuntimeError):
    """There is no place for another request right now."""


class Workers:
    """The tokenizer and scheduler processes of one server.

    Invariant: between `start` and `stop` all of them run, or `watch` has told that one does not.
    """

    def __init__(self, config: ServerArgs) -> None:
        """The sockets' folder is made here; `config` is what everybody uses from now on."""
        folder = tempfile.mkdtemp(prefix="minisgl-")
        self.config = replace(
            config, socket_folder=folder, distributed_init_method=f"file://{folder}/rendezvous"
        )
        self._folder = folder
        self._processes: dict[str, Any] = {}
        self._control: ZmqPullQueue[WorkerMsg] = ZmqPullQueue(
            self.config.address("control"), True, reader(FRONTEND_TYPES)
        )
        self._watcher: threading.Thread | None = None
        self._stopping = threading.Event()

    def start(self) -> None:
        """Return when every process is ready; EngineDied, with the reason, if one fails or takes longer than
        startup_timeout."""
        context = process_context()
        size = self.config.tp_info.size
        for rank in range(size):
            mine = replace(self.config, tp_info=DistributedInfo(rank, size))
            self._add(context, f"scheduler rank {rank}", _run_scheduler, (mine,))
        for index in range(len(self.config.tokenizer_addresses)):
            self._add(context, f"tokenizer {index}", _run_tokenizer, (self.config, index))
        missing = set(self._processes)
        deadline = time.monotonic() + self.config.startup_timeout
        while missing:
            for message in self._control.drain(0.1):
                if message.error is not None:
                    raise EngineDied(f"{message.name} did not start: {message.error}")
                missing.discard(message.name)
            if ended := self._first_dead():
                raise EngineDied(f"{ended[0]} did not start: {ended[1]}")
            if missing and time.monotonic() > deadline:
                waited = self.config.startup_timeout
                raise EngineDied(f"not ready after {waited:g} s: {', '.join(sorted(missing))}")

    def _add(self, context: Any, name: str, run: Callable[..., None], args: tuple[Any, ...]) -> None:
        process = context.Process(
            target=_work, args=(name, self.config.address("control"), run, args), name=name
        )
        process.start()
        self._processes[name] = process
        logger.info("%s is process %d", name, process.pid)

    def dead(self) -> str | None:
        """Which process has ended and why, or None."""
        ended = self._first_dead()
        return None if ended is None else f"{ended[0]} has ended: {ended[1]}"

    def _first_dead(self) -> tuple[str, str] | None:
        """The name of a process that has ended, and why. Whoever said something failed first: the others may
        have ended because of it."""
        ended = {name: p.exitcode for name, p in self._processes.items() if not p.is_alive()}
        if not ended:
            return None
        told: dict[str, str] = {}
        deadline = time.monotonic() + LAST_WORDS_S
        # Ended by an exception: it has said which, and the words may still be on their way.
        while not told and 1 in ended.values() and time.monotonic() < deadline:
            told = {message.name: message.error for message in self._control.drain(0.1) if message.error}
        name = next((n for n in ended if n in told), next(iter(ended)))
        return name, told.get(name) or _exit_reason(ended[name])

    def watch(self, on_death: Callable[[str], None]) -> None:
        """Call `on_death(reason)` from a thread of its own, once, when a process has ended before `stop`."""

        def look() -> None:
            sentinels = [process.sentinel for process in self._processes.values()]
            while not self._stopping.is_set():
                if connection.wait(sentinels, timeout=0.5) and not self._stopping.is_set():
                    on_death(self.dead() or "a process has ended")
                    return

        self._watcher = threading.Thread(target=look, name="watcher", daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """End all processes: asked first, made to after STOP_S; at once if one has died, for then the others may
        be waiting for it where nobody can ask them anything."""
        self._stopping.set()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join(STOP_S)
        broken = any(not process.is_alive() for process in self._processes.values())
        for process in self._processes.values():
            process.kill() if broken else process.terminate()
        deadline = time.monotonic() + STOP_S
        for name, process in self._processes.items():
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                logger.warning("%s does not end when asked to: killed", name)
                process.kill()
                process.join(STOP_S)
        self._control.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _exit_reason(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by signal {-code} ({signal.Signals(-code).name})"
    return f"exit code {code}"


def _work(name: str, control_address: str, run: Callable[..., None], args: tuple[Any, ...]) -> None:
    """The main function of a process of the engine."""
    folder = os.path.dirname(control_address.removeprefix("ipc://"))
    threading.Thread(target=_end_with_parent, args=(folder,), name="parent-watcher", daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent ends us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    setup_logging()
    control: ZmqPushQueue[WorkerMsg] = ZmqPushQueue(control_address, False, pack)
    try:
        run(*args, ready=lambda: control.put(WorkerMsg(name)))
    except Exception as error:
        control.put(WorkerMsg(name, f"{type(error).__name__}: {error}"))
        let_last_words_out(STOP_S)
        raise


def _end_with_parent(folder: str) -> None:
    """Wait for the parent's end, however long it lives; then clear up after it, and end as well."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)


def _run_scheduler(config: ServerArgs, ready: Callable[[], None]) -> None:
    from minisgl.scheduler.scheduler import Scheduler

    if torch.cuda.is_available():
        torch.cuda.set_device(config.tp_info.rank)
    elif config.tp_info.size > 1:  # ranks share the processors
        torch.set_num_threads(max(1, torch.get_num_threads() // config.tp_info.size))
    scheduler = Scheduler(config)
    try:
        # The first request with a stop text would hold everybody up while it is read.
        scheduler.finish_rules.tokenizer = load_tokenizer(config.model_folder)
        ready()
        scheduler.run_forever()
    finally:
        scheduler.shutdown()


def _run_tokenizer(config: ServerArgs, index: int, ready: Callable[[], None]) -> None:
    from minisgl.tokenizer.server import run_tokenizer

    torch.set_num_threads(1)
    run_tokenizer(config, index, ready)


class EngineClient:
    """The front end's end of the queues. Everything here happens in one event loop; `fail` too.

    Invariant: `_calls` has exactly the requests whose end is to come: not told, not aborted.
    """

    def __init__(self, config: ServerArgs) -> None:
        self._config = config
        self._tokenizers: list[ZmqPushQueue[object]] = [
            ZmqPushQueue(address, False, pack) for address in config.tokenizer_addresses
        ]
        self._inlet: ZmqAsyncPullQueue[BaseFrontendMsg] = ZmqAsyncPullQueue(
            config.address("frontend"), True, reader(FRONTEND_TYPES)
        )
        self._uids = count()
        self._calls: dict[int, tuple[Call, int]] = {}
        self._asked: dict[int, asyncio.Future[dict[str, int]]] = {}
        self._failure: str | None = None

    async def listen(self) -> None:
        """Hand replies to those who wait for them, until cancelled. What breaks it is told to all of them."""
        try:
            while True:
                try:
                    arrived = await self._inlet.get(IDLE_S)
                except TimeoutError:
                    continue
                for message in each(arrived, BatchFrontendMsg):
                    self._take(message)
        except Exception as error:
            self.fail(f"replies cannot be read: {error}")
            raise

    def _take(self, message: BaseFrontendMsg) -> None:
        if isinstance(message, StatusReply):
            if (asked := self._asked.pop(message.uid, None)) and not asked.done():
                asked.set_result(message.status)
        elif isinstance(message, UserReply) and message.uid in self._calls:
            call, index = self._calls[message.uid]
            if message.finished:
                del self._calls[message.uid]
            call.take(index, message)

    def submit(
        self,
        prompts: Sequence[Prompt],
        params: SamplingParams,
        template_args: Mapping[str, Any] | None = None,
    ) -> Call:
        """Ask for params.n answers to each of the prompts; answer i * n + j is the j-th to prompt i.

        ValueError for something that cannot be sent, TooManyRequests, EngineDied.
        """
        if self._failure is not None:
            raise EngineDied(self._failure)
        wanted = len(prompts) * params.n
        if wanted > self._config.max_open_requests:
            raise ValueError(
                f"{wanted} answers are asked for at once; the server takes {self._config.max_open_requests} "
                "requests in all"
            )
        if len(self._calls) + wanted > self._config.max_open_requests:
            raise TooManyRequests(
                f"{len(self._calls)} requests are running or waiting and {wanted} more were asked for; the "
                f"server takes {self._config.max_open_requests}. Try again later."
            )
        call = Call(self, self._config.reply_timeout)
        try:
            for prompt in prompts:
                for choice in range(params.n):
                    uid = next(self._uids)
                    self._send(
                        uid, TokenizeMsg(uid, prompt, params.choice(choice), dict(template_args or {}))
                    )
                    self._calls[uid] = call, len(call.uids)
                    call.uids.append(uid)
        except (TypeError, ValueError) as error:
            call.close()
            raise ValueError(str(error)) from error
        return call

    def abort(self, uid: int) -> None:
        """Nobody wants the rest of this request; nothing happens if it has ended."""
        if self._calls.pop(uid, None) is not None and self._failure is None:
            with contextlib.suppress(EngineDied):
                self._send(uid, AbortMsg(uid))

    async def status(self, timeout_s: float) -> dict[str, int]:
        """What the scheduler says of itself; TimeoutError if it says nothing, EngineDied."""
        if self._failure is not None:
            raise EngineDied(self._failure)
        uid = next(self._uids)
        self._asked[uid] = asyncio.get_running_loop().create_future()
        self._send(uid, AskStatusMsg(uid))
        try:
            async with asyncio.timeout(timeout_s):
                return await self._asked[uid]
        finally:
            self._asked.pop(uid, None)

    def fail(self, reason: str) -> None:
        """The engine is gone: everybody who waits is told, and nobody can ask any more."""
        if self._failure is not None:
            return
        self._failure = reason
        for call in {call for call, _ in self._calls.values()}:
            call.take(-1, None)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(EngineDied(reason))

    @property
    def failure(self) -> str | None:
        return self._failure

    def close(self) -> None:
        for queue in (*self._tokenizers, self._inlet):
            queue.close()

    def _send(self, uid: int, message: object) -> None:
        try:
            self._tokenizers[uid % len(self._tokenizers)].put(message, SEND_S)
        except TimeoutError as error:
            self.fail(str(error))
            raise EngineDied(str(error)) from error


class Call:
    """Answers that were asked for together, as their pieces come: `async for index, reply in call`.

    Whoever has one closes it, in `finally`: what has not ended by then is aborted, and the iteration ends.
    """

    def __init__(self, client: EngineClient, timeout_s: float) -> None:
        self.uids: list[int] = []
        self._client = client
        self._timeout_s = timeout_s
        self._pieces: asyncio.Queue[tuple[int, UserReply | None]] = asyncio.Queue()
        self._ended = 0
        self._closed = False

    def take(self, index: int, reply: UserReply | None) -> None:
        """For the client: a piece has come, or (None) there will be no more."""
        self._pieces.put_nowait((index, reply))

    def __aiter__(self) -> Call:
        return self

    async def __anext__(self) -> tuple[int, UserReply]:
        """The next piece of any of the answers; EngineDied; TimeoutError if there is none in time."""
        if self._closed or self._ended == len(self.uids):
            raise StopAsyncIteration
        async with asyncio.timeout(self._timeout_s):
            index, reply = await self._pieces.get()
        if self._closed:
            raise StopAsyncIteration
        if reply is None:
            raise EngineDied(self._client.failure or "the engine has ended")
        self._ended += reply.finished
        return index, reply

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._pieces.put_nowait((-1, None))  # for whoever is waiting
        for uid in self.uids:
            self._client.abort(uid)


def main(argv: Sequence[str]) -> int:
    """The command: serve, or talk in a shell, until Ctrl-C. Exit status 1, with the reason on stderr, if the
    engine could not be started or has died."""
    config, shell = parse_args(argv)
    setup_logging()
    torch.set_num_threads(1)  # this process only passes text on

    def terminated(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminated)
    if shell:
        from minisgl.shell import serve_shell as serve
    else:
        from minisgl.server.api_server import serve_http as serve
    workers = Workers(config)
    try:
        serve(workers)
    except KeyboardInterrupt:
        return 0
    except (EngineDied, OSError) as error:
        print(f"minisgl: {error}", file=sys.stderr)
        return 1
    finally:
        workers.stop()
    return 0
