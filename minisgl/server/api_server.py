"""The HTTP server: its routes, and how answers are written.

`/v1/completions` and `/v1/chat/completions` speak OpenAI's protocol, `/generate` mini-sglang's. An answer is sent
as a whole or, with stream=true, as server-sent events while it comes. A client that hangs up ends its requests.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from minisgl.message.frontend import TokenReport, TokenText, UserReply
from minisgl.server.args import (
    ChatRequest,
    CompletionRequest,
    GenerateRequest,
    RequestFault,
    SamplingFields,
    ServerArgs,
)
from minisgl.server.launch import Call, EngineClient, EngineDied, TooManyRequests, Workers

T = TypeVar("T")

MAX_BODY_BYTES = 8 * 2**20
STATUS_S = 10.0  # for the scheduler to answer /health; a long prefill may be before us
CLOSE_S = 3

# -- how answers are written -----------------------------------------------------------------------------


class Answer:
    """One answer as far as it has come."""

    def __init__(self) -> None:
        self.text = ""
        self.reports: list[TokenReport] = []
        self.last: UserReply | None = None

    def take(self, reply: UserReply) -> None:
        self.text += reply.text
        self.reports += reply.reports
        self.last = reply

    @property
    def finish_reason(self) -> str | None:
        return self.last.finish_reason if self.last else None


class Writer(ABC):
    """How one route writes its answers: as a whole, or piece by piece.

    whole and piece give the choice of one answer; envelope is what choices are put into.
    """

    def __init__(self, request: SamplingFields, config: ServerArgs) -> None:
        self._model = config.model_name
        self._choices = request.n or 1
        self._logprobs = request.wanted_logprobs is not None
        self._id = secrets.token_hex(12)
        self._created = int(time.time())

    @abstractmethod
    def envelope(
        self, choices: list[dict[str, Any]], usage: dict[str, Any] | None, streamed: bool
    ) -> dict[str, Any]: ...

    @abstractmethod
    def whole(self, index: int, answer: Answer) -> dict[str, Any]: ...

    @abstractmethod
    def piece(self, index: int, reply: UserReply, is_first: bool) -> dict[str, Any]: ...

    def usage(self, answers: list[Answer]) -> dict[str, Any]:
        """A prompt counts once, however many answers it has."""
        ends = [answer.last for answer in answers if answer.last is not None]
        prompts = ends[:: self._choices]
        prompt_tokens = sum(end.prompt_tokens for end in prompts)
        completion_tokens = sum(end.completion_tokens for end in ends)
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": sum(end.cached_tokens for end in prompts)},
        }


class ChatWriter(Writer):
    def envelope(
        self, choices: list[dict[str, Any]], usage: dict[str, Any] | None, streamed: bool
    ) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self._id}",
            "object": "chat.completion.chunk" if streamed else "chat.completion",
            "created": self._created,
            "model": self._model,
            "choices": choices,
            "usage": usage,
        }

    def whole(self, index: int, answer: Answer) -> dict[str, Any]:
        return {
            "index": index,
            "message": {"role": "assistant", "content": answer.text},
            "logprobs": self._told(answer.reports),
            "finish_reason": answer.finish_reason,
        }

    def piece(self, index: int, reply: UserReply, is_first: bool) -> dict[str, Any]:
        delta = {"role": "assistant", "content": reply.text} if is_first else {"content": reply.text}
        return {
            "index": index,
            "delta": delta if reply.text or is_first else {},
            "logprobs": self._told(reply.reports),
            "finish_reason": reply.finish_reason,
        }

    def _told(self, reports: list[TokenReport] | tuple[TokenReport, ...]) -> dict[str, Any] | None:
        if not self._logprobs:
            return None

        def told(token: TokenText) -> dict[str, Any]:
            data = None if token.data is None else list(token.data)
            return {"token": token.text, "logprob": token.logprob, "bytes": data}

        return {
            "content": [
                {**told(report.token), "top_logprobs": [told(one) for one in report.top]}
                for report in reports
            ]
        }


class CompletionWriter(Writer):
    def envelope(
        self, choices: list[dict[str, Any]], usage: dict[str, Any] | None, streamed: bool
    ) -> dict[str, Any]:
        return {
            "id": f"cmpl-{self._id}",
            "object": "text_completion",
            "created": self._created,
            "model": self._model,
            "choices": choices,
            "usage": usage,
        }

    def whole(self, index: int, answer: Answer) -> dict[str, Any]:
        return self._choice(index, answer.text, answer.reports, answer.finish_reason)

    def piece(self, index: int, reply: UserReply, is_first: bool) -> dict[str, Any]:
        return self._choice(index, reply.text, reply.reports, reply.finish_reason)

    def _choice(self, index: int, text: str, reports: Any, finish_reason: str | None) -> dict[str, Any]:
        return {
            "index": index,
            "text": text,
            "logprobs": self._told(reports) if self._logprobs else None,
            "finish_reason": finish_reason,
        }

    @staticmethod
    def _told(reports: list[TokenReport] | tuple[TokenReport, ...]) -> dict[str, Any]:
        return {
            "tokens": [report.token.text for report in reports],
            "token_logprobs": [report.token.logprob for report in reports],
            "top_logprobs": [{one.text: one.logprob for one in report.top} for report in reports],
            "text_offset": [report.offset for report in reports],
        }


class GenerateWriter(CompletionWriter):
    """A single answer without an envelope; several in "choices"."""

    def envelope(
        self, choices: list[dict[str, Any]], usage: dict[str, Any] | None, streamed: bool
    ) -> dict[str, Any]:
        told = choices[0] if self._choices == 1 and choices else {"choices": choices}
        return told if usage is None else {**told, "usage": usage}


# -- the application -------------------------------------------------------------------------------------


def create_app(config: ServerArgs, client: EngineClient) -> FastAPI:
    """The application; `client` is listened to as long as it runs."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        listener = asyncio.create_task(client.listen())
        yield
        listener.cancel()

    app = FastAPI(title="minisgl", lifespan=lifespan)
    app.add_middleware(BodyLimit)
    app.add_exception_handler(RequestFault, _fault)
    app.add_exception_handler(HTTPException, _fault)
    app.add_exception_handler(RequestValidationError, _invalid)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """All the way to the scheduler and back."""
        try:
            return {"status": "ok", **await client.status(STATUS_S)}
        except TimeoutError:
            raise RequestFault(503, f"the scheduler has not answered for {STATUS_S:g} s") from None
        except EngineDied as error:
            raise RequestFault(503, str(error)) from None

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        model = {"id": config.model_name, "object": "model", "created": started, "owned_by": "minisgl"}
        return {"object": "list", "data": [{**model, "root": config.model_path}]}

    @app.post("/generate")
    async def generate(body: GenerateRequest, request: Request) -> Response:
        return await _answer(body, request, GenerateWriter(body, config), config, client)

    @app.post("/v1/completions")
    async def completions(body: CompletionRequest, request: Request) -> Response:
        return await _answer(body, request, CompletionWriter(body, config), config, client)

    @app.post("/v1/chat/completions")
    async def chat_completions(body: ChatRequest, request: Request) -> Response:
        return await _answer(body, request, ChatWriter(body, config), config, client)

    started = int(time.time())
    return app


async def _answer(
    body: SamplingFields, request: Request, writer: Writer, config: ServerArgs, client: EngineClient
) -> Response:
    if body.model not in (None, config.model_name):
        raise RequestFault(
            404, f"there is no model {body.model!r} here; there is {config.model_name!r}", "model"
        )
    try:
        call = client.submit(body.prompts(), body.params(), body.template_args)
    except ValueError as error:
        raise RequestFault(400, str(error)) from error
    except TooManyRequests as error:
        raise RequestFault(429, str(error)) from error
    except EngineDied as error:
        raise RequestFault(503, str(error)) from error
    try:
        if not body.stream:
            answers = [Answer() for _ in call.uids]
            await _or_hung_up(request, _gather(call, answers))
            choices = [writer.whole(index, answer) for index, answer in enumerate(answers)]
            return JSONResponse(writer.envelope(choices, writer.usage(answers), streamed=False))
        # The status is sent with the first byte, so it must be known first whether there is an answer at all.
        first = await _or_hung_up(request, _next(call))
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        return EventStream(call, _events(call, first, writer, with_usage))
    except BaseException:
        call.close()
        raise


async def _gather(call: Call, answers: list[Answer]) -> None:
    while any(answer.finish_reason is None for answer in answers):
        index, reply = await _next(call)
        answers[index].take(reply)


async def _next(call: Call) -> tuple[int, UserReply]:
    """The next piece; RequestFault for what is not an answer."""
    try:
        index, reply = await anext(call)
    except TimeoutError:
        raise RequestFault(504, "the engine has not answered in time") from None
    except EngineDied as error:
        raise RequestFault(503, str(error)) from None
    if reply.finish_reason == "error":
        raise RequestFault(400, reply.error or "the request cannot be answered")
    if reply.finish_reason == "abort":
        raise RequestFault(503, "the request was ended by the server")
    return index, reply


async def _events(
    call: Call, first: tuple[int, UserReply], writer: Writer, with_usage: bool
) -> AsyncIterator[str]:
    """Server-sent events, the last of them "[DONE]"; a fault on the way is an event too, and the last one."""
    answers = [Answer() for _ in call.uids]
    index, reply = first
    try:
        while True:
            is_first = answers[index].last is None
            answers[index].take(reply)
            yield _event(writer.envelope([writer.piece(index, reply, is_first)], None, streamed=True))
            if all(answer.finish_reason is not None for answer in answers):
                break
            index, reply = await _next(call)
    except RequestFault as fault:
        yield _event(_fault_body(fault.status, str(fault), fault.param))
        return
    if with_usage:
        yield _event(writer.envelope([], writer.usage(answers), streamed=True))
    yield "data: [DONE]\n\n"


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"


class EventStream(StreamingResponse):
    """Closes its call when it ends, also if the client hangs up before the first event."""

    def __init__(self, call: Call, events: AsyncIterator[str]) -> None:
        super().__init__(
            events,
            media_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._call.close()


async def _or_hung_up(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What `work` comes to; it is cancelled, and RequestFault 499 raised, if the client hangs up first."""

    async def hang_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(hang_up())
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise RequestFault(499, "the client has hung up")  # for the log; nobody reads it
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


class BodyLimit:
    """Turns bodies of more than MAX_BODY_BYTES away, before they are in memory."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MAX_BODY_BYTES:
                raise HTTPException(413, f"the body is too large: at most {MAX_BODY_BYTES} bytes are taken")
            return message

        await self._app(scope, counted, send)


def _fault_body(status: int, message: str, param: str | None) -> dict[str, Any]:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


async def _fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestFault | HTTPException)
    if isinstance(error, HTTPException):
        status, message, param = error.status_code, str(error.detail), None
    else:
        status, message, param = error.status, str(error), error.param
    headers = {"Retry-After": "1"} if status == 429 else None
    return JSONResponse(_fault_body(status, message, param), status, headers)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # Of several readings of a value, the one that went furthest was probably meant.
    fault = max(error.errors(), key=lambda one: len(one["loc"]))
    where = ".".join(str(part) for part in fault["loc"][1:])
    why = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        why = "this field is not known here"
    return JSONResponse(_fault_body(400, f"{where}: {why}" if where else why, where or None), 400)


class _Server(uvicorn.Server):
    """Ends open answers when it is told to stop, so that it need not wait for them."""

    def __init__(self, config: uvicorn.Config, client: EngineClient) -> None:
        super().__init__(config)
        self._client = client
        self.loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().serve(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As the original, which would raise the signals again at the end: stopping is all they are for."""
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        super().handle_exit(sig, frame)  # counts signals, so it comes first
        self.end("the server is stopping")

    def end(self, reason: str) -> None:
        """From any thread: fail the client, and stop serving."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self._client.fail, reason)
        self.should_exit = True


def serve_http(workers: Workers) -> None:
    """Start the processes and serve until a signal comes; EngineDied if one of them ends, OSError if the address
    cannot be had."""
    config = workers.config
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        listening = socket.create_server((config.host, config.port), family=family, backlog=2048)
    except OSError as error:
        raise OSError(f"cannot serve on {config.host} port {config.port}: {error}") from error
    with listening:
        client = EngineClient(config)
        try:
            workers.start()
            port = listening.getsockname()[1]
            server = _Server(
                uvicorn.Config(
                    create_app(config, client),
                    log_level="warning",
                    timeout_graceful_shutdown=CLOSE_S,
                ),
                client,
            )
            deaths: list[str] = []

            def on_death(reason: str) -> None:
                deaths.append(reason)
                server.end(reason)

            workers.watch(on_death)
            host = f"[{config.host}]" if family == socket.AF_INET6 else config.host
            print(f"minisgl serves {config.model_name} on http://{host}:{port}", flush=True)
            server.run([listening])
            if deaths:
                raise EngineDied(deaths[0])
        finally:
            client.close()
