"""Rows of the page table: which request has which, and what is in them."""

from __future__ import annotations

import torch


class TableManager:
    """Hands out rows 0 .. max_running_reqs - 1 of a page table,
    int32 [rows, max_seq_len].
    """

    def __init__(self, max_running_reqs: int, page_table: torch.Tensor) -> None:
        raise NotImplementedError

    @property
    def available_size(self) -> int:
        """Rows that are free."""
        raise NotImplementedError

    def allocate(self) -> int:
        """A free row's number; RuntimeError if there is none."""
        raise NotImplementedError

    def free(self, row: int) -> None:
        """Give a row back; RuntimeError if nobody has it."""
        raise NotImplementedError

    def write_prompt(self, row: int, input_ids: torch.Tensor) -> None:
        """Put a prompt, int32 [tokens], into a row of the token pool."""
        raise NotImplementedError

    def write_pages(self, row: int, first: int, pages: torch.Tensor, page_size: int) -> None:
        """Write whole pages into a row from token `first` on;
        pages: int32 [n], positions of first tokens.
        """
        raise NotImplementedError
