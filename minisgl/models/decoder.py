"""The decoder-only transformer with pre-norm: Llama, Mistral, Qwen2, Qwen3 and Qwen3-MoE are this one,
switched by ModelConfig.

Attributes carry the names that checkpoints use, so that a weight's name is its path through these classes.
"""

from __future__ import annotations

import torch

from minisgl.core import get_global_ctx
from minisgl.layers.base import BaseOP, OPList
from minisgl.layers.embedding import ParallelLMHead, VocabParallelEmbedding
from minisgl.layers.norm import RMSNormFused
from minisgl.models.base import BaseLLMModel
from minisgl.models.config import ModelConfig
from minisgl.models.utils import RopeAttn, create_mlp


class DecoderLayer(BaseOP):
    """Attention and MLP. What it hands on is the MLP's output and the residual stream, not yet added."""

    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        self.input_layernorm = RMSNormFused(config.hidden_size, config.rms_norm_eps)
        self.self_attn = RopeAttn(config, layer_id)
        self.post_attention_layernorm = RMSNormFused(config.hidden_size, config.rms_norm_eps)
        self.mlp = create_mlp(config, layer_id)

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        x, residual = self.input_layernorm.forward(x, residual)
        x = self.self_attn.forward(x)
        x, residual = self.post_attention_layernorm.forward(x, residual)
        return self.mlp.forward(x), residual


class DecoderModel(BaseOP):
    """ids int32 [tokens] -> hidden states [tokens, hidden], normed."""

    def __init__(self, config: ModelConfig) -> None:
        self.embed_tokens = VocabParallelEmbedding(config.vocab_size, config.hidden_size)
        self.layers = OPList(DecoderLayer(config, layer_id) for layer_id in range(config.num_layers))
        self.norm = RMSNormFused(config.hidden_size, config.rms_norm_eps)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embed_tokens.forward(input_ids)
        residual: torch.Tensor | None = None
        for layer in self.layers:
            x, residual = layer.forward(x, residual)
        return self.norm.forward(x, residual)[0]


class DecoderForCausalLM(BaseLLMModel):
    def __init__(self, config: ModelConfig) -> None:
        self.model = DecoderModel(config)
        self.lm_head = ParallelLMHead(
            config.vocab_size,
            config.hidden_size,
            tied_embedding=self.model.embed_tokens if config.tie_word_embeddings else None,
        )

    def forward(self) -> torch.Tensor:
        return self.lm_head.forward(self.model.forward(get_global_ctx().batch.input_ids))
