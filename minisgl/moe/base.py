"""What a mixture-of-experts layer computes, apart from how: routing, and the interface of its backends.

An expert is a small gated MLP. A router scores every expert for every token; each token goes to the few with
the best scores, and the answers are added up, weighted. The work of a token is that of `top_k` experts, while
the model has the parameters of all: the difficulty is that every token wants another set of matrices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch


class Routing(NamedTuple):
    """Where tokens go. weights: float32 [tokens, top_k]; experts: int64 [tokens, top_k], best first."""

    weights: torch.Tensor
    experts: torch.Tensor


def route(router_logits: torch.Tensor, top_k: int, renormalize: bool) -> Routing:
    """Softmax over all experts in float32, then the `top_k` most probable of each token.

    router_logits: [tokens, num_experts]. With `renormalize` the chosen probabilities are scaled to sum to 1;
    without it they sum to less, as some checkpoints were trained.
    """
    weights, experts = router_logits.softmax(dim=-1, dtype=torch.float32).topk(top_k, dim=-1)
    if renormalize:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return Routing(weights, experts)


class BaseMoEBackend(ABC):
    """Runs the experts. Backends differ in the order of the work and must agree in the result."""

    @abstractmethod
    def forward(
        self,
        x: torch.Tensor,
        router_logits: torch.Tensor,
        gate_up: torch.Tensor,
        down: torch.Tensor,
        top_k: int,
        renormalize: bool,
    ) -> torch.Tensor:
        """x [tokens, hidden] -> [tokens, hidden]: the weighted sum over each token's experts.

        router_logits: [tokens, E]. gate_up: [E, 2 n, hidden], gate above up; down: [E, hidden, n]; n is this
        rank's share of an expert's width, so with several ranks the result is this rank's summand. Weights
        multiply in x's dtype, as transformers does.
        """
