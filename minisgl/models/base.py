"""What the engine asks of a model."""

from __future__ import annotations

from abc import abstractmethod

import torch

from minisgl.layers.base import BaseOP


class BaseLLMModel(BaseOP):
    """A causal language model over the batch in flight."""

    @abstractmethod
    def forward(self) -> torch.Tensor:
        """Logits of the next token, [requests, vocab_size], for the batch of the global context.

        A decode batch gives a row for each padded request, a prefill batch for each real one.
        """
