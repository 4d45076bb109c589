"""Token ids to vectors, and vectors to logits: the same matrix in many models, cut by the vocabulary in both.

Rank r holds the rows of token ids r * share .. (r + 1) * share, where share is the vocabulary divided by the
ranks and rounded up. The last rank may hold fewer; its matrix is padded, so that all ranks' logits have one
shape.
"""

from __future__ import annotations

import torch

from minisgl.core import get_global_ctx
from minisgl.distributed.impl import DistributedCommunicator
from minisgl.distributed.info import get_tp_info
from minisgl.kernel import embedding_lookup, linear, pack_linear_weight
from minisgl.layers.base import BaseOP
from minisgl.utils.misc import div_ceil


class VocabParallelEmbedding(BaseOP):
    """ids int32 [tokens] -> [tokens, embedding_dim]. `weight` is [share, embedding_dim]."""

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        tp = get_tp_info()
        share = div_ceil(num_embeddings, tp.size)
        first = share * tp.rank
        self._range = (first, min(first + share, num_embeddings))
        self._vocab_size = num_embeddings
        self._communicator = DistributedCommunicator()
        self.weight = torch.empty(share, embedding_dim)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if get_tp_info().size == 1:
            return embedding_lookup(self.weight, ids)
        return self._communicator.all_reduce(embedding_lookup(self.weight, ids, self._range))


class ParallelLMHead(VocabParallelEmbedding):
    """Hidden states of a batch -> logits [requests, vocab_size], for the last token of each request only.

    With `tied_embedding` it has no weight of its own and uses the embedding's.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, tied_embedding: VocabParallelEmbedding | None = None
    ) -> None:
        super().__init__(num_embeddings, embedding_dim)
        self._tied_embedding = tied_embedding
        self._packed: torch.Tensor | None = None
        if tied_embedding is not None:
            del self.weight

    def finish_loading(self) -> None:
        """The embedding keeps its rows for looking up, so a tied matrix is in memory twice if it is packed."""
        self._packed = pack_linear_weight(self._owner.weight)
        if self._packed is not None and self._tied_embedding is None:
            self.weight = self.weight.to("meta")

    @property
    def _owner(self) -> VocabParallelEmbedding:
        return self if self._tied_embedding is None else self._tied_embedding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = get_global_ctx().batch
        if batch.is_prefill:  # in a decode batch every row is a last token
            x = x[batch.attn_metadata.get_last_indices(batch.size)]
        logits = linear(x, self._owner.weight, self._packed)
        if get_tp_info().size == 1:
            return logits
        # Gathered along the first dimension, so the vocabulary goes there and comes back.
        return self._communicator.all_gather(logits.t()).t()[:, : self._vocab_size]
