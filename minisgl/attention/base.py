"""What an attention backend is: two calls, one a batch and one a layer.

`prepare_metadata` turns the lengths and page-table rows of a batch's requests into the form that the
backend's kernel wants; `forward` stores the new keys and values and runs the kernel, layer after layer, on
that metadata.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch

from minisgl.core import Batch


class BaseAttnMetadata(ABC):
    """What a backend keeps about one batch."""

    @abstractmethod
    def get_last_indices(self, bs: int) -> torch.Tensor:
        """Row of the last query token of each of the first `bs` requests: integers [bs] on the device."""


class BaseAttnBackend(ABC):
    """Attention over the paged KV pool, causal, aligned at the end.

    The n query tokens of a request are the last n of its kv_len tokens; query i sees the keys
    0 .. kv_len - n + i.
    """

    @abstractmethod
    def prepare_metadata(self, batch: Batch) -> None:
        """Set batch.attn_metadata from batch.padded_reqs and the page table. Runs no kernel."""

    @abstractmethod
    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        """Store k and v at batch.out_loc, then attend.

        q: [tokens, local query heads, head_dim]; k, v: [tokens, local KV heads, head_dim]. Returns q's shape.
        """

    # CUDA graphs. A graph reads and writes the memory that it was captured with, so what changes from batch
    # to batch has to be copied into buffers that stay.

    @abstractmethod
    def init_capture_graph(self, max_seq_len: int, sizes: Sequence[int]) -> None:
        """Allocate buffers for decode batches of each size in `sizes`, up to max_seq_len tokens a request."""

    @abstractmethod
    def prepare_for_capture(self, batch: Batch) -> None:
        """Set batch.attn_metadata over the buffers for a batch of that size; the forward is recorded next."""

    @abstractmethod
    def prepare_for_replay(self, batch: Batch) -> None:
        """Copy the metadata of `batch`, prepared and padded to a captured size, into that size's buffers."""


class HybridBackend(BaseAttnBackend):
    """One backend for prefill batches, another for decode batches ("fa,fi").

    Both work on the same pool with the same page table, so a request may change sides between two steps.
    """

    def __init__(self, prefill_backend: BaseAttnBackend, decode_backend: BaseAttnBackend) -> None:
        self.prefill_backend = prefill_backend
        self.decode_backend = decode_backend

    def _backend_of(self, batch: Batch) -> BaseAttnBackend:
        return self.prefill_backend if batch.is_prefill else self.decode_backend

    def prepare_metadata(self, batch: Batch) -> None:
        self._backend_of(batch).prepare_metadata(batch)

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        return self._backend_of(batch).forward(q, k, v, layer_id, batch)

    def init_capture_graph(self, max_seq_len: int, sizes: Sequence[int]) -> None:
        self.decode_backend.init_capture_graph(max_seq_len, sizes)

    def prepare_for_capture(self, batch: Batch) -> None:
        self.decode_backend.prepare_for_capture(batch)

    def prepare_for_replay(self, batch: Batch) -> None:
        self.decode_backend.prepare_for_replay(batch)
