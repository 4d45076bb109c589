"""Chapter 2: layers know their weights, and compute what their definitions say."""

import pytest
import torch
import torch.nn.functional as F

from minisgl.distributed import DistributedInfo, set_tp_info
from minisgl.layers.activation import silu_and_mul
from minisgl.layers.base import BaseOP, OPList
from minisgl.layers.linear import LinearColParallelMerged, LinearQKVMerged, LinearReplicated
from minisgl.layers.norm import RMSNorm, RMSNormFused
from minisgl.layers.rotary import RotaryEmbedding, inverse_frequencies
from minisgl.models.config import ModelConfig, RotaryConfig
from minisgl.models.decoder import DecoderForCausalLM

RAW = {
    "model_type": "qwen3",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 50,
    "max_position_embeddings": 32,
}


@pytest.fixture(autouse=True)
def _single_rank() -> None:
    set_tp_info(DistributedInfo(0, 1))


def weights_of(model: BaseOP) -> dict[str, torch.Tensor]:
    return {name: torch.randn(weight.shape) for name, weight in model.state_dict().items()}


def test_names_are_paths() -> None:
    names = list(DecoderForCausalLM(ModelConfig.from_hf(RAW)).state_dict())
    assert names[0] == "model.embed_tokens.weight"
    assert "model.layers.1.self_attn.qkv_proj.weight" in names
    assert "model.layers.0.self_attn.q_norm.weight" in names
    assert names[-2:] == ["model.norm.weight", "lm_head.weight"]
    tied = DecoderForCausalLM(ModelConfig.from_hf({**RAW, "tie_word_embeddings": True}))
    assert "lm_head.weight" not in tied.state_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda w: w.update({"model.layers.7.x": torch.zeros(1)}),
            "'model.layers.7.x' is not part of this model",
        ),
        (lambda w: w.pop("model.norm.weight"), "missing weights: model.norm.weight"),
        (
            lambda w: w.update({"model.norm.weight": torch.zeros(3)}),
            r"\(3,\), the model expects torch.float32 \(32,\)",
        ),
        (lambda w: w.update({"model.norm.weight": torch.zeros(32).half()}), "torch.float16"),
    ],
)
def test_exactly_its_weights_are_taken(change: object, message: str) -> None:
    model = DecoderForCausalLM(ModelConfig.from_hf(RAW))
    weights = weights_of(model)
    change(weights)  # type: ignore[operator]
    with pytest.raises(ValueError, match=message):
        model.load_state_dict(weights)


def test_merged_products_are_their_parts_side_by_side() -> None:
    x = torch.randn(3, 32)
    merged = LinearColParallelMerged(32, [6, 10])
    parts = [torch.randn(6, 32), torch.randn(10, 32)]
    merged.load_state_dict({"weight": torch.cat(parts)})
    wanted = torch.cat([F.linear(x, part) for part in parts], dim=1)
    torch.testing.assert_close(merged.forward(x), wanted)
    assert LinearQKVMerged(32, 8, 4, 2, has_bias=True).weight.shape == (64, 32)


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_a_packed_weight_gives_the_same_product(rows: int) -> None:
    layer = LinearReplicated(32, 20, has_bias=True)
    weights = {"weight": torch.randn(20, 32), "bias": torch.randn(20)}
    layer.load_state_dict(weights)
    x = torch.randn(rows, 32)
    plain = layer.forward(x)
    OPList([layer]).finish_loading()
    torch.testing.assert_close(layer.forward(x), plain, atol=1e-5, rtol=1e-5)


def test_norm_and_residual() -> None:
    x, residual = torch.randn(4, 16), torch.randn(4, 16)
    weight = torch.randn(16)
    norm, fused = RMSNorm(16, 1e-6), RMSNormFused(16, 1e-6)
    norm.load_state_dict({"weight": weight})
    fused.load_state_dict({"weight": weight})
    torch.testing.assert_close(norm.forward(x), F.rms_norm(x, (16,), weight, 1e-6))
    normed, stream = fused.forward(x, residual)
    assert torch.equal(stream, x + residual)
    torch.testing.assert_close(normed, norm.forward(x + residual))
    torch.testing.assert_close(silu_and_mul(x), F.silu(x[:, :8]) * x[:, 8:])


def test_rotation_depends_on_the_distance_only() -> None:
    rope = RotaryEmbedding(RotaryConfig(16, 64, 10_000.0))
    q, k = torch.randn(1, 1, 16).expand(2, 1, 16), torch.randn(1, 1, 16).expand(2, 1, 16)
    turned_q, _ = rope.forward(torch.tensor([5, 40], dtype=torch.int32), q, k)
    _, turned_k = rope.forward(torch.tensor([3, 38], dtype=torch.int32), q, k)
    near, far = (turned_q * turned_k).sum(-1).flatten()
    torch.testing.assert_close(near, far, atol=1e-4, rtol=0)
    still, _ = rope.forward(torch.tensor([0, 0], dtype=torch.int32), q, k)
    assert torch.equal(still, q)


def test_scalings_of_positions() -> None:
    plain, factor = inverse_frequencies(RotaryConfig(16, 64, 10_000.0))
    assert (float(plain[0]), factor) == (1.0, 1.0)
    linear, _ = inverse_frequencies(RotaryConfig(16, 64, 10_000.0, {"rope_type": "linear", "factor": 4.0}))
    torch.testing.assert_close(linear, plain / 4)
    yarn, factor = inverse_frequencies(RotaryConfig(16, 64, 10_000.0, {"rope_type": "yarn", "factor": 4.0}))
    assert float(yarn[0]) == 1.0
    assert factor == pytest.approx(1.1386, abs=1e-4)
    with pytest.raises(ValueError, match="'llama3' needs 'low_freq_factor'"):
        inverse_frequencies(RotaryConfig(16, 64, 10_000.0, {"rope_type": "llama3"}))
    with pytest.raises(ValueError, match="'magic' is not built"):
        inverse_frequencies(RotaryConfig(16, 64, 10_000.0, {"rope_type": "magic"}))
