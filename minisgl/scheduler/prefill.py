"""Requests that wait for their prompt to be computed: who is let in, and how much of each prompt is next.

A request is let in when a row of the page table is free and all pages that it could ever need can be kept for
it. What its prompt has in common with earlier ones need not be computed. The rest of the prompts shares a
budget of tokens a batch; the prompt that meets the budget's end is cut, and goes on in the next batch.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from minisgl.core import Batch, Req
from minisgl.kvcache.base import BaseCacheHandle
from minisgl.scheduler.cache import CacheManager
from minisgl.scheduler.decode import DecodeManager
from minisgl.scheduler.table import TableManager
from minisgl.scheduler.utils import ChunkedReq, PendingReq
from minisgl.utils.misc import align_up, div_ceil

# Two prompts of one batch that begin with so many equal tokens are worth computing one after the other, for
# then the second finds the first one's pages in the cache.
WORTH_WAITING_FOR = 32


class _Start(NamedTuple):
    """A prompt's row, how much of it is in the pool, and what it holds in the cache."""

    row: int
    cached_len: int
    handle: BaseCacheHandle


class PrefillManager:
    """Invariants
    - `pending` is in order of arrival, and who does not fit holds up everybody behind: large requests are
      not overtaken for ever;
    - a request is pending until its last chunk has been launched; its row, pages and handle are its latest
      chunk's.
    """

    def __init__(
        self, cache: CacheManager, table: TableManager, decode: DecodeManager, *, prefers_cached: bool
    ) -> None:
        """prefers_cached: whether the prefix cache keeps anything, so that waiting for it can be worth it."""
        self.pending: list[PendingReq] = []
        self._cache = cache
        self._table = table
        self._decode = decode
        self._wait_for = align_up(WORTH_WAITING_FOR, cache.page_size) if prefers_cached else None

    def add(self, pending: PendingReq) -> None:
        self.pending.append(pending)

    def remove(self, uid: int) -> PendingReq | None:
        """Take a request out, whatever part of its prompt is done; None if it is not pending."""
        for index, pending in enumerate(self.pending):
            if pending.uid == uid:
                return self.pending.pop(index)
        return None

    @property
    def chunks(self) -> list[ChunkedReq]:
        """The latest chunk of each prompt that is under way."""
        return [pending.chunk for pending in self.pending if pending.chunk is not None]

    @property
    def reserved_pages(self) -> int:
        """Pages that prompts under way, and their answers, may still ask for."""
        return sum(
            self._pages(pending.kv_tokens) - self._pages(pending.chunk.cached_len)
            for pending in self.pending
            if pending.chunk is not None
        )

    def schedule_next_batch(self, budget: int) -> Batch | None:
        """The next prefill batch, of at most `budget` new tokens; None if nobody can be let in."""
        if not self.pending:
            return None
        reserved = self.reserved_pages + self._decode.reserved_pages
        reqs: list[Req] = []
        left: list[PendingReq] = []
        beginnings: set[bytes] = set()
        for index, pending in enumerate(self.pending):
            start = self._start(pending, reserved, beginnings) if budget > 0 else None
            if start is None:
                left += self.pending[index:]
                break
            if start == "next batch":
                left.append(pending)
                continue
            req = self._make_req(pending, start, budget)
            if pending.chunk is None:  # what a chunk will need is in `reserved` already
                reserved += self._pages(pending.kv_tokens) - self._pages(req.cached_len)
            budget -= req.extend_len
            reqs.append(req)
            if isinstance(req, ChunkedReq):
                pending.chunk = req
                left.append(pending)
        self.pending = left
        return Batch(reqs, "prefill") if reqs else None

    def _start(
        self, pending: PendingReq, reserved: int, beginnings: set[bytes]
    ) -> _Start | Literal["next batch"] | None:
        """Where the prompt is taken up; "next batch" if it is better taken up there; None if it, and
        everybody behind it, has to wait."""
        if chunk := pending.chunk:
            assert chunk.cache_handle is not None
            return _Start(chunk.table_idx, chunk.cached_len, chunk.cache_handle)
        if not self._table.available_size:
            return None
        handle = self._cache.match(pending.input_ids)
        if self._shares(pending, handle, beginnings):
            return "next batch"
        # Locking takes the matched pages out of what is evictable, so only then is there something to count.
        self._cache.lock(handle)
        needed = self._pages(pending.kv_tokens) - self._pages(handle.cached_len)
        if needed + reserved > self._cache.available_pages:
            self._cache.unlock(handle)
            return None
        row = self._table.allocate()
        self._table.write_prompt(row, pending.input_ids)
        if handle.cached_len:
            self._table.page_table[row, : handle.cached_len] = handle.matched_indices()
        return _Start(row, handle.cached_len, handle)

    def _shares(self, pending: PendingReq, handle: BaseCacheHandle, beginnings: set[bytes]) -> bool:
        """Whether a prompt of this batch will bring a good part of this one into the cache. If not, this
        prompt's own beginning is noted for those behind it."""
        if self._wait_for is None:
            return False
        end = handle.cached_len + self._wait_for
        if end >= len(pending.input_ids):
            return False
        beginning = pending.input_ids[:end].numpy().tobytes()
        if beginning in beginnings:
            return True
        beginnings.add(beginning)
        return False

    def _make_req(self, pending: PendingReq, start: _Start, budget: int) -> Req:
        end = min(len(pending.input_ids), start.cached_len + budget)
        kind = Req if end == len(pending.input_ids) else ChunkedReq
        return kind(
            input_ids=pending.input_ids[:end],
            table_idx=start.row,
            cached_len=start.cached_len,
            output_len=pending.output_len,
            uid=pending.uid,
            sampling_params=pending.sampling_params,
            cache_handle=start.handle,
            arrival=pending.arrival,
        )

    def _pages(self, tokens: int) -> int:
        return div_ceil(tokens, self._cache.page_size)
