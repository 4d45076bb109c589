"""The loop that keeps the device busy: receive, choose a batch, launch it, look at tokens, say what came out.

With overlap, one batch is always in flight: the next is chosen and launched before the tokens of the current
one are known. Its input ids are not needed on the host for that; the device writes each sampled token into
the token pool, and gathers it from there. The price is that a request whose last token was an end-of-text
token is already in the batch behind: it takes part in one step too many, whose token is dropped.
"""

from __future__ import annotations

from collections import deque
from itertools import count

import torch

from minisgl.attention.utils import make_positions
from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.engine import Engine
from minisgl.engine.sample import Logprobs
from minisgl.kvcache import create_prefix_cache
from minisgl.message.backend import (
    AbortBackendMsg,
    AskStatusBackendMsg,
    BaseBackendMsg,
    BatchBackendMsg,
    ExitMsg,
    UserMsg,
)
from minisgl.message.tokenizer import DetokenizeMsg, SchedulerStatusMsg, TokenLogprobs
from minisgl.scheduler.cache import CacheManager
from minisgl.scheduler.config import SchedulerConfig
from minisgl.scheduler.decode import DecodeManager
from minisgl.scheduler.io import SchedulerIOMixin
from minisgl.scheduler.prefill import PrefillManager
from minisgl.scheduler.table import TableManager
from minisgl.scheduler.utils import ChunkedReq, FinishRules, InFlight, PendingReq
from minisgl.utils.device import new_stream, pin, use_stream, wait_stream
from minisgl.utils.hf import load_eos_token_ids, load_tokenizer
from minisgl.utils.logger import init_logger

logger = init_logger(__name__)


class Scheduler(SchedulerIOMixin):
    """Invariants, between two steps
    - a request is pending, or on the device (`_on_device`), or its end has been told; the end of each is told
      once, and nothing after it; `_live` are the numbers of those that have not ended;
    - at most one batch is in flight, none without overlap;
    - a request that has ended while a batch with it is in flight keeps its row and pages (`_leaving`) until
      that batch has landed.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self.engine = Engine(config)
        engine = self.engine
        self.device = engine.device
        self.table_manager = TableManager(config.max_running_req, engine.page_table)
        prefix_cache = create_prefix_cache(config.cache_type, config.page_size, self.device)
        self.cache_manager = CacheManager(
            engine.num_pages, config.page_size, self.table_manager, prefix_cache
        )
        self.decode_manager = DecodeManager(config.page_size)
        self.prefill_manager = PrefillManager(
            self.cache_manager,
            self.table_manager,
            self.decode_manager,
            prefers_cached=config.cache_type != "naive",
        )
        self.finish_rules = FinishRules(load_eos_token_ids(config.model_folder), None)
        self._stream, self._engine_stream = new_stream(self.device), new_stream(self.device)
        self._kept_in_flight = 1 if config.overlaps else 0
        self._in_flight: deque[InFlight] = deque()
        self._live: set[int] = set()
        self._on_device: dict[int, Req] = {}
        self._leaving: set[Req] = set()
        self._cached_tokens: dict[int, int] = {}
        self._arrivals = count()
        self._decode_is_due = False
        self._stopped = False
        super().__init__(config)

    # -- the loop -----------------------------------------------------------------------------------

    def run_forever(self) -> None:
        """Serve until an ExitMsg comes."""
        while not self._stopped:
            self.step()

    @property
    def has_work(self) -> bool:
        """False if nothing will happen before the next message."""
        return bool(self.prefill_manager.pending or self.decode_manager.running or self._in_flight)

    def step(self) -> None:
        """One turn: messages in, one batch out to the device, and the results of the one before."""
        with torch.inference_mode(), use_stream(self._stream):
            for message in self.receive_msg(blocking=not self.has_work):
                self._process(message)
            batch = self._schedule_next_batch()
            if batch is not None:
                self._in_flight.append(self._launch(batch))
            kept = self._kept_in_flight if batch is not None else 0
            while len(self._in_flight) > kept:
                self._land(self._in_flight.popleft())
        if self.config.checks_pages:
            self.check_integrity()

    def shutdown(self) -> None:
        """Let go of the engine; what has not ended never will."""
        self._in_flight.clear()
        self.close_io()
        self.engine.shutdown()

    # -- messages -----------------------------------------------------------------------------------

    def _process(self, message: BaseBackendMsg) -> None:
        if isinstance(message, BatchBackendMsg):
            for one in message.data:
                self._process(one)
        elif isinstance(message, UserMsg):
            self._accept(message)
        elif isinstance(message, AbortBackendMsg):
            self._abort(message.uid)
        elif isinstance(message, AskStatusBackendMsg):
            self.send_result([SchedulerStatusMsg(message.uid, self.status())])
        elif isinstance(message, ExitMsg):
            self._stopped = True
        else:
            raise TypeError(f"the scheduler does not know what to do with a {type(message).__name__}")

    def _accept(self, message: UserMsg) -> None:
        uid, input_ids, params = message.uid, message.input_ids, message.sampling_params
        if uid in self._live:
            raise RuntimeError(f"request {uid} came twice: a number is free again once its end was told")
        if fault := self.refusal(input_ids, params):
            refused = DetokenizeMsg(uid, None, True, "error", error=fault, prompt_tokens=len(input_ids))
            self.send_result([refused])
            return
        room = self.engine.max_seq_len - len(input_ids)
        if params.max_tokens > room:
            logger.info("request %d: %d tokens at most, not %d", uid, room, params.max_tokens)
        self._live.add(uid)
        self.prefill_manager.add(
            PendingReq(uid, input_ids, params, min(params.max_tokens, room), next(self._arrivals))
        )

    def refusal(self, input_ids: torch.Tensor, params: SamplingParams) -> str | None:
        """Why a request can never run, in words for its sender; None if it can.

        input_ids: int32 [prompt tokens]. An answer that is too long for what is left is no reason: it ends
        there, with "length".
        """
        limit, vocab_size = self.engine.max_seq_len, self.engine.config.model_config.vocab_size
        if len(input_ids) == 0:
            return "the prompt is empty: give at least one token"
        if len(input_ids) >= limit:
            return (
                f"the prompt has {len(input_ids)} tokens; prompt and answer together may have {limit}, so the "
                f"prompt at most {limit - 1}"
            )
        if int(input_ids.min()) < 0 or int(input_ids.max()) >= vocab_size:
            return f"the prompt has token ids outside of 0 .. {vocab_size - 1}"
        if params.n != 1:
            return f"n={params.n}: a request has one answer; make one request for each"
        if params.stop and self.finish_rules.tokenizer is None:
            try:
                self.finish_rules.tokenizer = load_tokenizer(self.config.model_folder)
            except (OSError, ImportError, ValueError) as error:
                return f"stop texts need the model's tokenizer, which cannot be loaded: {error}"
        return None

    def status(self) -> dict[str, int]:
        """What a SchedulerStatusMsg tells."""
        return {
            "num_pages": self.engine.num_pages,
            "available_pages": self.cache_manager.available_pages,
            "running": len(self._on_device),
            "waiting": len(self.prefill_manager.pending),
            "max_seq_len": self.engine.max_seq_len,
        }

    def _abort(self, uid: int) -> None:
        """End a request now. Whatever part of it is on the device leaves when its batch has landed."""
        if pending := self.prefill_manager.remove(uid):
            prompt_tokens = len(pending.input_ids)
            if pending.chunk is not None:
                self._leave(pending.chunk)
        elif req := self._on_device.get(uid):
            prompt_tokens = req.prompt_len
            self._leave(req)
        else:
            return
        self._live.discard(uid)
        self.send_result([DetokenizeMsg(uid, None, True, "abort", prompt_tokens=prompt_tokens)])

    # -- a batch on its way out ---------------------------------------------------------------------

    def _schedule_next_batch(self) -> Batch | None:
        """Prompts first, for a request that waits for its first token waits longest. But a batch of prompts
        that ended with the budget is followed by one step of those that are decoding."""
        if self._decode_is_due and (batch := self.decode_manager.schedule_next_batch()):
            self._decode_is_due = False
            return batch
        batch = self.prefill_manager.schedule_next_batch(self.config.max_extend_tokens)
        if batch is None:
            return self.decode_manager.schedule_next_batch()
        new_tokens = sum(req.extend_len for req in batch.reqs)
        self._decode_is_due = new_tokens >= self.config.max_extend_tokens
        return batch

    def _launch(self, batch: Batch) -> InFlight:
        """Prepare the batch, start its forward, and move every request's books on by one step."""
        engine, table = self.engine, self.table_manager
        engine.graph_runner.pad_batch(batch)
        self.cache_manager.allocate_for(batch)
        rows, batch.positions = self._token_places(batch)
        batch.out_loc = table.page_table[rows, batch.positions]
        engine.attn_backend.prepare_metadata(batch)
        written = self._written_places(batch)
        args = engine.sampler.prepare(batch, table.token_pool)
        if batch.is_prefill:
            for req in batch.reqs:
                # Later chunks find what earlier ones computed; only the first tells what was cached.
                self._cached_tokens.setdefault(req.uid, req.cached_len)

        wait_stream(self._engine_stream, self._stream)
        with use_stream(self._engine_stream):
            batch.input_ids = table.token_pool[rows, batch.positions]
            output = engine.forward_batch(batch, args)
            table.token_pool[written[0], written[1]] = output.next_tokens

        self.decode_manager.update(batch.reqs)
        if batch.is_prefill:
            for req in batch.reqs:
                # From here on a prompt like this one finds these pages: its forward comes after ours.
                self.cache_manager.cache_req(req, finished=False)
                if not isinstance(req, ChunkedReq):
                    self._on_device[req.uid] = req
        return InFlight(batch, args, output, (rows, written))

    def _token_places(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Row and column, in page table and token pool, of each new token: int32 [tokens] each."""
        reqs = batch.padded_reqs
        if batch.is_decode:
            both = self._to_device([[req.table_idx for req in reqs], [req.cached_len for req in reqs]])
            return both[0], both[1]
        rows = torch.cat([torch.full((req.extend_len,), req.table_idx, dtype=torch.int32) for req in reqs])
        return rows.to(self.device, non_blocking=True), make_positions(reqs, self.device)

    def _written_places(self, batch: Batch) -> torch.Tensor:
        """Where in the token pool each request's next token goes: int32 [2, requests].

        A chunk's next token is known already, so what is sampled for it goes where nobody reads: to the
        dummy request's token.
        """
        dummy = self.engine.dummy_req.table_idx
        places = [
            (dummy, 0) if isinstance(req, ChunkedReq) else (req.table_idx, req.device_len)
            for req in batch.reqs
        ]
        return self._to_device([[row for row, _ in places], [at for _, at in places]])

    def _to_device(self, values: list[list[int]]) -> torch.Tensor:
        host = torch.tensor(values, dtype=torch.int32, pin_memory=pin(self.device))
        return host.to(self.device, non_blocking=True)

    # -- a batch that comes back --------------------------------------------------------------------

    def _land(self, flight: InFlight) -> None:
        """Read the batch's tokens, end the requests for which one was the last, and tell."""
        flight.output.copy_done.synchronize()
        replies: list[DetokenizeMsg] = []
        tokens = flight.output.next_tokens_cpu.tolist()
        for index, req in enumerate(flight.batch.reqs):
            if req in self._leaving:
                if not self._is_in_flight(req):
                    self._leaving.remove(req)
                    self._release(req)
                continue
            if isinstance(req, ChunkedReq):
                continue
            req.append_host(flight.output.next_tokens_cpu[index : index + 1])
            reason = self.finish_rules.reason(req, tokens[index])
            replies.append(
                DetokenizeMsg(
                    uid=req.uid,
                    next_token=tokens[index],
                    finished=reason is not None,
                    finish_reason=reason,
                    prompt_tokens=req.prompt_len,
                    cached_tokens=self._cached_tokens[req.uid],
                    logprobs=_logprobs_of(req, flight.output.logprobs_cpu, index),
                )
            )
            if reason is not None:
                self._leave(req)
        if replies:
            self.send_result(replies)

    def _leave(self, req: Req) -> None:
        """The request has ended: it is in no further batch, and frees what it has as soon as it may."""
        self.decode_manager.remove(req)
        self._on_device.pop(req.uid, None)
        self._live.discard(req.uid)
        self._cached_tokens.pop(req.uid, None)
        if self._is_in_flight(req):
            self._leaving.add(req)
        else:
            self._release(req)

    def _release(self, req: Req) -> None:
        self.cache_manager.cache_req(req, finished=True)
        self.table_manager.free(req.table_idx)

    def _is_in_flight(self, req: Req) -> bool:
        return any(req in flight.batch.reqs for flight in self._in_flight)

    def check_integrity(self) -> None:
        """RuntimeError unless every page is in exactly one place: free, in the cache, or one request's."""
        holders = [*self._on_device.values(), *self._leaving, *self.prefill_manager.chunks]
        self.cache_manager.check_integrity(holders)


def _logprobs_of(req: Req, logprobs: Logprobs | None, index: int) -> TokenLogprobs | None:
    wanted = req.sampling_params.logprobs
    if wanted is None or logprobs is None:
        return None
    top = zip(logprobs.top_ids[index, :wanted].tolist(), logprobs.top[index, :wanted].tolist(), strict=True)
    return TokenLogprobs(float(logprobs.chosen[index]), tuple(top))
