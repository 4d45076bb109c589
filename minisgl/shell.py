"""Talking to a model in the terminal: the engine's processes as for the server, and a prompt instead of HTTP.

The conversation is sent anew with every line; the prefix cache is what makes that cheap.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace

from minisgl.core import SamplingParams
from minisgl.server.launch import Call, EngineClient, EngineDied, Workers

SETTINGS: dict[str, type[int] | type[float]] = {
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "seed": int,
    "max_tokens": int,
}
HELP = f"""\
/reset            forget the conversation
/set NAME VALUE   change how answers are drawn: {", ".join(SETTINGS)}
/exit             leave (as does Ctrl-D); Ctrl-C ends an answer"""


class Shell:
    """read_line gives the next line and raises EOFError at the end; write shows text, as it comes.

    Invariant: `_chat` alternates between user and assistant, and ends with an answer.
    """

    def __init__(
        self, client: EngineClient, read_line: Callable[[], Awaitable[str]], write: Callable[[str], None]
    ) -> None:
        self._client = client
        self._read_line = read_line
        self._write = write
        self._chat: list[dict[str, str]] = []
        self._params = SamplingParams(temperature=0.6, top_p=0.95, max_tokens=2048)
        self._call: Call | None = None
        self._interrupted = False

    async def run(self) -> None:
        """Until the end of input or /exit; EngineDied."""
        while True:
            try:
                line = (await self._read_line()).strip()
            except EOFError:
                return
            if line == "/exit":
                return
            if line.startswith("/"):
                self._command(line)
            elif line:
                await self._answer(line)

    def interrupt(self) -> bool:
        """End the answer that is coming; False if there is none."""
        if self._call is None:
            return False
        self._interrupted = True
        self._call.close()
        return True

    def _command(self, line: str) -> None:
        name, *arguments = line.split()
        if name == "/reset" and not arguments:
            self._chat.clear()
        elif name == "/set" and len(arguments) == 2 and arguments[0] in SETTINGS:
            setting, value = arguments
            try:
                self._params = replace(self._params, **{setting: SETTINGS[setting](value)})
            except ValueError as error:
                self._write(f"! {error}\n")
        else:
            self._write(f"{HELP}\n")

    async def _answer(self, line: str) -> None:
        chat = [*self._chat, {"role": "user", "content": line}]
        text = ""
        self._interrupted = False
        try:
            self._call = self._client.submit([chat], self._params)
            async for _, reply in self._call:
                if reply.error is not None:
                    self._write(f"! {reply.error}\n")
                    return
                text += reply.text
                self._write(reply.text)
        except ValueError as error:
            self._write(f"! {error}\n")
            return
        finally:
            if self._call is not None:
                self._call.close()
                self._call = None
        self._write(" [interrupted]\n" if self._interrupted else "\n")
        self._chat = [*chat, {"role": "assistant", "content": text}]


def serve_shell(workers: Workers) -> None:
    """Start the processes and talk until the end of input; EngineDied if one of them ends."""
    client = EngineClient(workers.config)
    try:
        print(f"loading {workers.config.model_name} ...", file=sys.stderr)
        workers.start()
        asyncio.run(_serve(workers, client))
    finally:
        client.close()


async def _serve(workers: Workers, client: EngineClient) -> None:
    loop = asyncio.get_running_loop()
    shell = Shell(client, _line_reader(), _write)
    listening = asyncio.create_task(client.listen())
    talking = asyncio.create_task(shell.run())

    def died(reason: str) -> None:
        client.fail(reason)
        talking.cancel()

    def interrupted() -> None:
        if not shell.interrupt():
            talking.cancel()

    workers.watch(lambda reason: loop.call_soon_threadsafe(died, reason))
    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await talking
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        listening.cancel()
    if client.failure is not None:
        raise EngineDied(client.failure)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _line_reader() -> Callable[[], Awaitable[str]]:
    if sys.stdin.isatty():
        return _read_from_terminal()
    return _read_from_pipe


def _read_from_terminal() -> Callable[[], Awaitable[str]]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter

    session: PromptSession[str] = PromptSession(
        "> ", completer=WordCompleter(["/reset", "/set", "/exit", "/help"], sentence=True)
    )

    async def read() -> str:
        try:
            return await session.prompt_async()
        except KeyboardInterrupt:
            return ""

    return read


async def _read_from_pipe() -> str:
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    if not line:
        raise EOFError
    return line
