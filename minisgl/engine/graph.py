"""Decode batches as CUDA graphs: the launches of a whole forward, recorded once and replayed by one call.

A decode step is a few hundred small kernels, and on a fast GPU starting them takes longer than running them.
A graph starts them all at once, but it knows only the addresses it was recorded with and only one batch size.
So there is a graph for each of some sizes, a batch is filled up with dummy requests to the next of these
sizes, and whatever differs between two batches is copied into static buffers first.

On the CPU a graph is a recorded call over the same buffers: nothing is gained there, and every mistake about
what has to be copied shows.
"""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections.abc import Sequence

import torch

from minisgl.attention.base import BaseAttnBackend
from minisgl.core import Batch, Context, Req
from minisgl.models.base import BaseLLMModel
from minisgl.utils.device import Graph, capture_graph, synchronize
from minisgl.utils.logger import init_logger

logger = init_logger(__name__)


def sizes_to_capture(largest: int) -> tuple[int, ...]:
    """Batch sizes up to `largest`: 1, 2, 4, then every 8. Padding wastes at most 7 rows."""
    if largest < 1:
        return ()
    return tuple(sorted({size for size in (1, 2, 4) if size < largest} | {*range(8, largest, 8), largest}))


class GraphRunner:
    """Invariants
    - the batch that a graph was recorded with is kept, for its tensors are the graph's inputs: slices of
      three buffers as long as the largest size, and what the attention backend keeps for that size;
    - `_logits` is where every graph writes: it holds the result of the latest replay.
    """

    def __init__(
        self,
        *,
        sizes: Sequence[int],
        max_seq_len: int,
        model: BaseLLMModel,
        attn_backend: BaseAttnBackend,
        ctx: Context,
        dummy_req: Req,
        device: torch.device,
    ) -> None:
        """Capture a graph for each of `sizes`, ascending; with none, every batch runs as it is."""
        self.sizes = list(sizes)
        self._attn_backend = attn_backend
        self._ctx = ctx
        self._dummy_req = dummy_req
        self._recorded: dict[int, tuple[Batch, Graph]] = {}
        if not self.sizes:
            return
        largest = self.sizes[-1]
        self._input_ids = torch.zeros(largest, dtype=torch.int32, device=device)
        self._positions = torch.zeros_like(self._input_ids)
        self._out_loc = torch.zeros_like(self._input_ids)
        self._logits: torch.Tensor | None = None
        attn_backend.init_capture_graph(max_seq_len, self.sizes)
        pool: Graph | None = None
        # The largest first: smaller graphs fit into the scratch memory that it leaves.
        for size in reversed(self.sizes):
            pool = self._capture(size, model, device, pool)
        logger.info("captured decode graphs for batches of %s", self.sizes)

    def _capture(self, size: int, model: BaseLLMModel, device: torch.device, pool: Graph | None) -> Graph:
        batch = Batch([self._dummy_req] * size, "decode")
        batch.input_ids = self._input_ids[:size]
        batch.positions = self._positions[:size]
        batch.out_loc = self._out_loc[:size]
        # Whatever is stored while recording goes where nobody reads.
        batch.out_loc.fill_(int(self._ctx.page_table[self._dummy_req.table_idx, 0]))
        self._attn_backend.prepare_for_capture(batch)

        def forward() -> None:
            with self._ctx.forward_batch(batch):
                logits = model.forward()
            if self._logits is None:
                self._logits = torch.empty_like(logits)
            self._logits[:size] = logits

        with torch.inference_mode():
            forward()  # kernels are built, and workspaces allocated, on first use: not while recording
            synchronize(device)
            graph = capture_graph(forward, device, pool)
        self._recorded[size] = (batch, graph)
        return graph

    def release(self) -> None:
        """Let go of every graph; from now on batches run as they are."""
        self.sizes = []
        self._recorded.clear()
        gc.collect()

    def pad_batch(self, batch: Batch) -> None:
        """Fill a decode batch up with dummies to the next captured size, before it is prepared."""
        if batch.is_decode and self.sizes and batch.size <= self.sizes[-1]:
            size = self.sizes[bisect_left(self.sizes, batch.size)]
            batch.padded_reqs = batch.reqs + [self._dummy_req] * (size - batch.size)

    def can_run(self, batch: Batch) -> bool:
        """Whether there is a graph for this batch, as it was padded."""
        return batch.is_decode and batch.padded_size in self._recorded

    def replay(self, batch: Batch) -> torch.Tensor:
        """Logits [requests, vocab_size] of a prepared batch. They are overwritten by the next replay."""
        recorded, graph = self._recorded[batch.padded_size]
        recorded.input_ids.copy_(batch.input_ids)
        recorded.positions.copy_(batch.positions)
        recorded.out_loc.copy_(batch.out_loc)
        self._attn_backend.prepare_for_replay(batch)
        graph.replay()
        assert self._logits is not None
        return self._logits[: batch.size]
