"""Which class builds which architecture of config.json."""

from __future__ import annotations

from minisgl.models.base import BaseLLMModel
from minisgl.models.config import ModelConfig
from minisgl.utils.registry import Entry, Registry

_DECODER = Entry("minisgl.models.decoder:DecoderForCausalLM", 2)

MODELS = Registry(
    "model architecture",
    {
        "LlamaForCausalLM": _DECODER,
        "MistralForCausalLM": _DECODER,
        "Qwen2ForCausalLM": _DECODER,
        "Qwen3ForCausalLM": _DECODER,
        "Qwen3MoeForCausalLM": _DECODER,
    },
)


def create_model(config: ModelConfig) -> BaseLLMModel:
    """A model whose tensors have shapes and no values yet, on torch's current default device and dtype.

    ValueError that lists the known architectures for one that is not among them.
    """
    model: BaseLLMModel = MODELS.load(config.architecture)(config)
    return model
