"""Rows of the page table: which request has which, and what is written in them."""

from __future__ import annotations

import torch


class TableManager:
    """Hands out the rows of a page table, int32 [rows, max_seq_len].

    `token_pool` has the page table's shape: `token_pool[r, t]` is token t of the request in row r, on the
    device, so that a step's input ids can be gathered there without asking the host.

    Invariant: a row is free or has exactly one owner.
    """

    def __init__(self, max_running_reqs: int, page_table: torch.Tensor) -> None:
        """Rows 0 .. max_running_reqs - 1 are handed out; the page table may have more, for others to use."""
        if max_running_reqs > len(page_table):
            raise ValueError(f"{max_running_reqs} requests do not fit in {len(page_table)} rows")
        self.page_table = page_table
        self.token_pool = torch.zeros_like(page_table)
        self._free = list(reversed(range(max_running_reqs)))
        self._owned: set[int] = set()

    @property
    def available_size(self) -> int:
        """Rows that are free."""
        return len(self._free)

    def allocate(self) -> int:
        """A free row's number; RuntimeError if there is none (ask `available_size` first)."""
        if not self._free:
            raise RuntimeError("no row of the page table is free")
        row = self._free.pop()
        self._owned.add(row)
        return row

    def free(self, row: int) -> None:
        """Give a row back; RuntimeError if nobody has it."""
        if row not in self._owned:
            raise RuntimeError(f"row {row} of the page table is not in use, so it cannot be freed")
        self._owned.remove(row)
        self._free.append(row)

    def write_prompt(self, row: int, input_ids: torch.Tensor) -> None:
        """Put a prompt, int32 [tokens] on the CPU, into a row of the token pool."""
        self.token_pool[row, : len(input_ids)] = input_ids.to(self.token_pool.device, non_blocking=True)

    def write_pages(self, row: int, first: int, pages: torch.Tensor, page_size: int) -> None:
        """Write whole pages into a row from token `first` on, a multiple of page_size.

        pages: int32 [n], positions of the pages' first tokens in the pool. What lands in the row are the n *
        page_size token positions: the table is by token even where memory is handed out by page.
        """
        if first % page_size:
            raise ValueError(f"token {first} is inside a page of {page_size} tokens")
        within = torch.arange(page_size, dtype=torch.int32, device=pages.device)
        positions = (pages.unsqueeze(1) + within).flatten()
        self.page_table[row, first : first + len(positions)] = positions

    def write_page_each(
        self, rows: list[int], firsts: list[int], pages: torch.Tensor, page_size: int
    ) -> None:
        """Write pages[i], int32, into row rows[i] from token firsts[i] on: one page a row, all at once."""
        device = pages.device
        within = torch.arange(page_size, device=device)
        at = torch.tensor([rows, firsts]).to(device, non_blocking=True)
        self.page_table[at[0].unsqueeze(1), at[1].unsqueeze(1) + within] = pages.unsqueeze(1) + within.int()
