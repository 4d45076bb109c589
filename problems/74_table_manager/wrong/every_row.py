"""Rows of the page table: which request has which, and what is written in them."""

from __future__ import annotations

import torch


class TableManager:
    """Hands out the rows of a page table, int32 [rows, max_seq_len].

    Invariant: a row is free or has exactly one owner.
    """

    def __init__(self, max_running_reqs: int, page_table: torch.Tensor) -> None:
        if max_running_reqs > len(page_table):
            raise ValueError(f"{max_running_reqs} requests do not fit in {len(page_table)} rows")
        self.page_table = page_table
        self.token_pool = torch.zeros_like(page_table)
        self._free = list(reversed(range(len(page_table))))
        self._owned: set[int] = set()

    @property
    def available_size(self) -> int:
        return len(self._free)

    def allocate(self) -> int:
        if not self._free:
            raise RuntimeError("no row of the page table is free")
        row = self._free.pop()
        self._owned.add(row)
        return row

    def free(self, row: int) -> None:
        if row not in self._owned:
            raise RuntimeError(f"row {row} of the page table is not in use")
        self._owned.remove(row)
        self._free.append(row)

    def write_prompt(self, row: int, input_ids: torch.Tensor) -> None:
        self.token_pool[row, : len(input_ids)] = input_ids

    def write_pages(self, row: int, first: int, pages: torch.Tensor, page_size: int) -> None:
        if first % page_size:
            raise ValueError(f"token {first} is inside a page of {page_size} tokens")
        within = torch.arange(page_size, dtype=torch.int32)
        positions = (pages.unsqueeze(1) + within).flatten()
        self.page_table[row, first : first + len(positions)] = positions
