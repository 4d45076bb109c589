"""How a kernel reads a paged batch: from indptr, indices and last_page_len to token slots in the pool.

Written so that wrong metadata is walked like right metadata, as the device does, with every read kept
inside the pool: faithful mode's garbage is what the given numbers say, and the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

LONGEST_WALK = 1 << 17
"""Tokens after which a walk over wrong lengths stops; no right batch of the course comes near."""


def as_read(tensor: torch.Tensor, entries: int) -> torch.Tensor:
    """The first `entries` int32 values that a kernel finds in the memory of `tensor`, shape [<= entries].

    Strides are ignored and 8-byte integers are read as pairs of 4-byte ones (low half first), because a
    kernel gets an address and believes that int32 values follow.
    """
    room = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    width = tensor.element_size() // 4
    needed = min(room, -(-entries // width))
    memory = torch.as_strided(tensor, (needed,), (1,)).contiguous()
    return memory.view(torch.int32)[:entries].clone()


def device_lengths(indptr: Sequence[int], last_page_len: Sequence[int], page_size: int) -> list[int]:
    """KV length of each request as the kernels compute it: 0 without pages, otherwise
    (pages - 1) * page_size + last_page_len. Negative results of wrong metadata count as 0."""
    lengths = []
    for i, last in enumerate(last_page_len):
        pages = indptr[i + 1] - indptr[i]
        lengths.append(max(0, (pages - 1) * page_size + last) if pages != 0 else 0)
    return lengths


def host_lengths(indptr: Sequence[int], last_page_len: Sequence[int], page_size: int) -> list[int]:
    """KV length of each request as plan computes it on the host. Unlike the device it gives
    last_page_len to a request without pages (flashinfer/page.py, get_seq_lens)."""
    return [max(indptr[i + 1] - indptr[i] - 1, 0) * page_size + last for i, last in enumerate(last_page_len)]


def told_lengths(seq_lens: torch.Tensor) -> list[int]:
    """The KV lengths that a caller's seq_lens says, as plan converts them."""
    return seq_lens.flatten().to(torch.int32).tolist()


def token_slots(
    first: int, length: int, indices: torch.Tensor, page_size: int, num_pages: int
) -> torch.Tensor:
    """Where the tokens of one request lie: int64 [length], position in the pool counted in tokens.

    first: index of the request's first page in `indices` (int32 [n]). Reads past the end of `indices`
    see page 0; page numbers outside the pool wrap around.
    """
    length = min(length, LONGEST_WALK)
    wanted = -(-length // page_size)
    first = max(first, 0)
    pages = indices[first : first + wanted].to(torch.int64)
    if pages.numel() < wanted:
        pages = torch.cat([pages, pages.new_zeros(wanted - pages.numel())])
    pages = pages.remainder(max(num_pages, 1))
    if page_size == 1:
        return pages
    slots = pages.unsqueeze(1) * page_size + torch.arange(page_size)
    return slots.flatten()[:length]
