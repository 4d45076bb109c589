"""Who owns which page of the KV pool.

A page is free, or in the prefix cache, or one request's own, and every move between the three is made here.
Inside a request's row of the page table the three kinds lie in this order:

    0 ........ handle.cached_len ........ cached_len, rounded up to a page
    |  in the cache, locked by  |  the request's own   |
    |  the request's handle     |                      |
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from minisgl.core import Batch, Req
from minisgl.kvcache.base import BaseCacheHandle, BasePrefixCache
from minisgl.scheduler.table import TableManager
from minisgl.utils.misc import align_down, align_up, div_ceil


class CacheManager:
    """Pages are named by the position of their first token in the pool, a multiple of page_size.

    Invariants, between two calls
    - every page is in exactly one place: free, in the prefix cache, or in one request's row behind its
      handle's tokens;
    - a request's handle is locked from admission to its end.
    """

    def __init__(
        self, num_pages: int, page_size: int, table: TableManager, prefix_cache: BasePrefixCache
    ) -> None:
        self.num_pages = num_pages
        self.page_size = page_size
        self.prefix_cache = prefix_cache
        self._table = table
        device = table.page_table.device
        self._free = torch.arange(num_pages, dtype=torch.int32, device=device) * page_size
        # Pages that came back since `_free` was last put together.
        self._returned: list[torch.Tensor] = []
        self._returned_count = 0

    # -- counting -----------------------------------------------------------------------------------

    @property
    def free_pages(self) -> int:
        """Pages that belong to nobody."""
        return len(self._free) + self._returned_count

    @property
    def available_pages(self) -> int:
        """Pages that could be handed out: free ones, and cached ones that nobody locks."""
        return self.free_pages + self.prefix_cache.size_info().evictable // self.page_size

    # -- handing out --------------------------------------------------------------------------------

    def allocate(self, count: int) -> torch.Tensor:
        """`count` pages, int32 [count] on the device, evicting cached ones if too few are free.

        RuntimeError if not even that is enough: admission has promised more than there is.
        """
        if count > self.free_pages:
            missing = count - self.free_pages
            if missing > self.available_pages - self.free_pages:
                raise RuntimeError(
                    f"{count} pages are wanted, {self.free_pages} are free and "
                    f"{self.available_pages - self.free_pages} evictable"
                )
            self._give_back(self.prefix_cache.evict(missing * self.page_size))
        if count > len(self._free):
            self._free = torch.cat([self._free, *self._returned])
            self._returned, self._returned_count = [], 0
        pages, self._free = self._free[:count], self._free[count:]
        return pages

    def allocate_for(self, batch: Batch) -> None:
        """Give each request of the batch the pages that its new tokens need, and write them in its row."""
        size = self.page_size
        wanted = []  # request, token at which its first new page begins, how many
        for req in batch.reqs:
            have = div_ceil(req.cached_len, size)
            if count := div_ceil(req.device_len, size) - have:
                wanted.append((req, have * size, count))
        if not wanted:
            return
        pages = self.allocate(sum(count for _, _, count in wanted))
        if batch.is_decode:  # one page each at most: all rows in one write
            rows = [req.table_idx for req, _, _ in wanted]
            self._table.write_page_each(rows, [first for _, first, _ in wanted], pages, size)
            return
        for (req, first, _), own in zip(wanted, pages.split([count for _, _, count in wanted]), strict=True):
            self._table.write_pages(req.table_idx, first, own, size)

    # -- the prefix cache ---------------------------------------------------------------------------

    def match(self, input_ids: torch.Tensor) -> BaseCacheHandle:
        """What is cached of a prompt, without its last token: one has to be computed to have logits."""
        return self.prefix_cache.match_prefix(input_ids[:-1])

    def lock(self, handle: BaseCacheHandle) -> None:
        self.prefix_cache.lock(handle)

    def unlock(self, handle: BaseCacheHandle) -> None:
        self.prefix_cache.unlock(handle)

    def cache_req(self, req: Req, *, finished: bool) -> None:
        """Hand the request's full pages to the prefix cache; if it has finished, give back all the others.

        Another request with the same beginning may have been here first. Then the cache keeps that one's
        pages and ours for the same tokens are duplicates: they are given back, and our row points at the
        cached ones from now on.

            0 .... old.cached_len .... already_cached .... new.cached_len .... cached_len
            |  locked before  |  duplicates, freed |  now the cache's  |  stays its own, |
            |                 |                    |                   |  or is freed    |
        """
        old = req.cache_handle
        assert old is not None
        row = self._table.page_table[req.table_idx]
        # A token that was sampled but dropped (an abort) has KV and no name.
        known = min(req.cached_len, len(req.input_ids))
        whole = align_down(known, self.page_size)
        already_cached, new = self.prefix_cache.insert_prefix(req.input_ids[:whole], row[:whole])
        self._give_back(row[old.cached_len : already_cached])
        if finished:
            self._give_back(row[new.cached_len : align_up(req.cached_len, self.page_size)])
            self.prefix_cache.unlock(old)
            req.cache_handle = None
            return
        self.prefix_cache.lock(new)
        self.prefix_cache.unlock(old)
        if already_cached > old.cached_len:
            row[old.cached_len : already_cached] = new.matched_indices()[old.cached_len : already_cached]
        req.cache_handle = new

    def _give_back(self, positions: torch.Tensor) -> None:
        """Free whole pages, given as the positions of all their tokens. Copied: rows are written again."""
        if len(positions):
            pages = positions[:: self.page_size].clone()
            self._returned.append(pages)
            self._returned_count += len(pages)

    # -- checking -----------------------------------------------------------------------------------

    def check_integrity(self, reqs: Iterable[Req]) -> None:
        """RuntimeError, naming a page, unless each page is in exactly one place.

        reqs: the requests that hold a row, each once. For tests and for MINISGL_CHECK: it reads back from
        the device.
        """
        self.prefix_cache.check_integrity()
        owners: dict[int, str] = {}

        def claim(positions: torch.Tensor, owner: str) -> None:
            for page in positions.tolist():
                if page in owners:
                    raise RuntimeError(f"page at {page} belongs to {owners[page]} and to {owner}")
                owners[page] = owner

        claim(torch.cat([self._free, *self._returned]), "the free pages")
        claim(self.prefix_cache.cached_indices()[:: self.page_size], "the prefix cache")
        for req in reqs:
            if req.cache_handle is None:
                raise RuntimeError(f"request {req.uid} holds a row and no handle")
            row = self._table.page_table[req.table_idx]
            shared = req.cache_handle.cached_len
            cached = req.cache_handle.matched_indices()
            if not torch.equal(row[:shared], cached.to(row.device)):
                raise RuntimeError(f"request {req.uid}: its row does not point at the pages it has locked")
            own = row[shared : align_up(req.cached_len, self.page_size)]
            claim(own[:: self.page_size], f"request {req.uid}")
        lost = set(range(0, self.num_pages * self.page_size, self.page_size)) - set(owners)
        if lost or len(owners) != self.num_pages:
            strange = sorted(set(owners) - set(range(0, self.num_pages * self.page_size, self.page_size)))
            raise RuntimeError(f"pages that belong to nobody: {sorted(lost)}; that do not exist: {strange}")
