"""Chapter 20: routing, grouping, and two ways to run the experts that have to agree."""

import pytest
import torch
import torch.nn.functional as F

from minisgl.core import Context, set_global_ctx
from minisgl.distributed import DistributedInfo, set_tp_info
from minisgl.models.config import ModelConfig
from minisgl.models.utils import GatedMLP, SparseMLP, create_mlp
from minisgl.moe import create_moe_backend
from minisgl.moe.base import route
from minisgl.moe.fused import group_by_expert

CONFIG = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "vocab_size": 50,
    "max_position_embeddings": 64,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "norm_topk_prob": True,
    "decoder_sparse_step": 2,
}


def test_the_chosen_are_the_most_probable() -> None:
    logits = torch.randn(20, 6, generator=torch.Generator().manual_seed(1))
    plain, scaled = route(logits, 3, False), route(logits, 3, True)
    probabilities = logits.softmax(dim=-1)
    for token in range(20):
        best = sorted(range(6), key=lambda expert: -float(probabilities[token, expert]))[:3]
        assert plain.experts[token].tolist() == best
        torch.testing.assert_close(plain.weights[token], probabilities[token, best])
    torch.testing.assert_close(scaled.weights.sum(dim=-1), torch.ones(20))
    assert torch.equal(plain.experts, scaled.experts)


def test_groups_hold_every_pair_once() -> None:
    experts = torch.randint(6, (30, 2), generator=torch.Generator().manual_seed(2))
    order, _, offsets = group_by_expert(experts, 6)
    assert sorted(order.tolist()) == list(range(60))
    begin = 0
    for expert, end in enumerate(offsets.tolist()):
        pairs = order[begin:end].tolist()
        assert [int(experts.flatten()[pair]) for pair in pairs] == [expert] * len(pairs)
        assert pairs == sorted(pairs), "within an expert, tokens keep their order"
        begin = end
    assert begin == 60


@pytest.mark.parametrize("tokens", [1, 5, 33])
def test_both_backends_compute_the_sum_over_experts(tokens: int) -> None:
    generator = torch.Generator().manual_seed(tokens)
    x = torch.randn(tokens, 32, generator=generator)
    logits = torch.randn(tokens, 6, generator=generator)
    gate_up = torch.randn(6, 32, 32, generator=generator) / 6
    down = torch.randn(6, 32, 16, generator=generator) / 4
    weights, experts = route(logits, 2, True)
    wanted = torch.zeros_like(x)
    for token in range(tokens):
        for weight, expert in zip(weights[token], experts[token].tolist(), strict=True):
            gate, up = F.linear(x[token], gate_up[expert]).chunk(2)
            wanted[token] += weight * F.linear(F.silu(gate) * up, down[expert])
    for name in ("torch", "fused"):
        got = create_moe_backend(name).forward(x, logits, gate_up, down, 2, True)
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


def test_an_expert_that_takes_all_and_experts_that_get_nothing() -> None:
    x, logits = torch.randn(9, 32), torch.full((9, 6), -9.0)
    logits[:, 4] = 9.0
    gate_up, down = torch.randn(6, 32, 32), torch.randn(6, 32, 16)
    naive, grouped = (
        create_moe_backend(name).forward(x, logits, gate_up, down, 1, True) for name in ("torch", "fused")
    )
    torch.testing.assert_close(naive, grouped, rtol=1e-4, atol=1e-4)


def test_layers_are_dense_or_sparse_as_the_config_says() -> None:
    set_tp_info(DistributedInfo(0, 1))
    config = ModelConfig.from_hf(CONFIG)
    kinds = [type(create_mlp(config, layer_id)) for layer_id in range(4)]
    assert kinds == [GatedMLP, SparseMLP, GatedMLP, SparseMLP]


@pytest.mark.parametrize("name", ["torch", "fused"])
def test_a_sparse_mlp_routes_and_runs(name: str) -> None:
    set_tp_info(DistributedInfo(0, 1))
    mlp = create_mlp(ModelConfig.from_hf(CONFIG), 1)
    generator = torch.Generator().manual_seed(5)
    shapes = {weight: tensor.shape for weight, tensor in mlp.state_dict().items()}
    assert shapes == {
        "gate.weight": (6, 32),
        "experts.gate_up_proj": (6, 32, 32),
        "experts.down_proj": (6, 32, 16),
    }
    weights = {key: torch.randn(shape, generator=generator) / 5 for key, shape in shapes.items()}
    mlp.load_state_dict(weights)
    ctx = Context(page_size=1)
    ctx.moe_backend = create_moe_backend(name)
    set_global_ctx(ctx)
    x = torch.randn(7, 32, generator=generator)
    wanted = create_moe_backend("torch").forward(
        x,
        F.linear(x, weights["gate.weight"]),
        weights["experts.gate_up_proj"],
        weights["experts.down_proj"],
        2,
        True,
    )
    torch.testing.assert_close(mlp.forward(x), wanted, rtol=1e-5, atol=1e-5)
