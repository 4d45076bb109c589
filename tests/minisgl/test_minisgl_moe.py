"""Experts: routing, the two backends against an expert-by-expert sum, stacked weights, and whole models."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from minisgl.distributed import DistributedInfo, reset_tp_info, set_tp_info
from minisgl.models.config import ModelConfig
from minisgl.models.register import create_model
from minisgl.models.weight import load_weights
from minisgl.moe import create_moe_backend
from minisgl.moe.base import route
from minisgl.moe.fused import group_by_expert
from minisgl.utils.hf import load_hf_config
from tests.minisgl.greedy import build_engine, generate
from tools.models import MIN_GAP, cached, greedy, load_reference

CPU = torch.device("cpu")
BACKENDS = ["torch", "fused"]
PROMPTS = [[40, 71, 82, 303, 9], [499], [17, 256, 301, 444, 120, 33, 78, 402, 11, 90, 265, 18]]
NEW_TOKENS = 16


@pytest.fixture(scope="module")
def tiny_moe() -> Path:
    return cached("qwen3_moe")


def layer(
    tokens: int, num_experts: int, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, router logits and stacked weights of a layer with hidden size 32 and experts of width 16."""
    generator = torch.Generator().manual_seed(tokens * 100 + num_experts)
    shapes = [(tokens, 32), (tokens, num_experts), (num_experts, 32, 32), (num_experts, 32, 16)]
    x, logits, gate_up, down = (torch.randn(shape, generator=generator).to(dtype) for shape in shapes)
    return x, logits, gate_up / 6, down / 4


def expert_by_expert(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, top_k: int, scaled: bool
) -> torch.Tensor:
    """The definition, token by token, in float64."""
    out = torch.zeros(x.shape, dtype=torch.float64)
    for token, row in enumerate(logits.double().softmax(dim=-1)):
        best = sorted(range(len(row)), key=lambda expert: -float(row[expert]))[:top_k]
        total = float(row[best].sum()) if scaled else 1.0
        for expert in best:
            gate, up = (gate_up[expert].double() @ x[token].double()).chunk(2)
            out[token] += row[expert] / total * (down[expert].double() @ (F.silu(gate) * up))
    return out


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(
    ("tokens", "num_experts", "top_k"), [(1, 4, 1), (1, 4, 4), (7, 4, 2), (3, 16, 2), (64, 8, 3), (5, 1, 1)]
)
def test_backends_compute_the_definition(
    name: str, tokens: int, num_experts: int, top_k: int, scaled: bool
) -> None:
    x, logits, gate_up, down = layer(tokens, num_experts)
    got = create_moe_backend(name).forward(x, logits, gate_up, down, top_k, scaled)
    wanted = expert_by_expert(x, logits, gate_up, down, top_k, scaled)
    assert got.dtype == x.dtype
    torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BACKENDS)
def test_all_tokens_may_want_the_same_expert(name: str) -> None:
    x, _, gate_up, down = layer(6, 5)
    logits = torch.zeros(6, 5)
    logits[:, 3] = 9.0
    got = create_moe_backend(name).forward(x, logits, gate_up, down, 1, True)
    torch.testing.assert_close(
        got.double(), expert_by_expert(x, logits, gate_up, down, 1, True), rtol=1e-5, atol=1e-5
    )


def test_bfloat16_stays_bfloat16_and_close() -> None:
    x, logits, gate_up, down = layer(9, 4, torch.bfloat16)
    results = [create_moe_backend(name).forward(x, logits, gate_up, down, 2, True) for name in BACKENDS]
    assert all(result.dtype == torch.bfloat16 for result in results)
    torch.testing.assert_close(results[0], results[1], rtol=2e-2, atol=2e-2)


def test_routing() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0, -1.0]])
    probabilities = logits.softmax(dim=-1)[0]
    plain, scaled = route(logits, 2, False), route(logits, 2, True)
    assert plain.experts.tolist() == scaled.experts.tolist() == [[1, 2]]
    torch.testing.assert_close(plain.weights[0], probabilities[[1, 2]])
    torch.testing.assert_close(scaled.weights.sum(dim=-1), torch.ones(1))
    assert route(logits.bfloat16(), 2, True).weights.dtype == torch.float32


def test_grouping() -> None:
    order, chosen, offsets = group_by_expert(torch.tensor([[2, 0], [2, 3], [0, 2]]), 5)
    # Pairs 1 and 4 chose expert 0; 0, 2, 5 expert 2; 3 expert 3; nobody 1 or 4.
    assert order.tolist() == [1, 4, 0, 2, 5, 3]
    assert chosen.tolist() == [0, 0, 2, 2, 2, 3]
    assert offsets.tolist() == [2, 2, 5, 6, 6]
    assert offsets.dtype == torch.int32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="captures a CUDA graph: needs an NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_grouped_experts_in_a_cuda_graph(dtype: torch.dtype) -> None:
    backend = create_moe_backend("fused")
    x, logits, gate_up, down = (tensor.cuda() for tensor in layer(9, 4, dtype))
    wanted = backend.forward(x, logits, gate_up, down, 2, True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = backend.forward(x, logits, gate_up, down, 2, True)
    logits.copy_(logits.flip(0))  # the router decides anew at each replay
    graph.replay()
    fresh = backend.forward(x, logits, gate_up, down, 2, True)
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(out, fresh, rtol=tolerance, atol=tolerance)
    assert not torch.allclose(out, wanted, rtol=tolerance, atol=tolerance)


def test_backend_names() -> None:
    assert type(create_moe_backend("auto")) is type(create_moe_backend("fused"))
    with pytest.raises(ValueError, match="unknown MoE backend 'marlin': choose from torch, fused"):
        create_moe_backend("marlin")


RAW: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
    "max_position_embeddings": 64,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}


def test_config_in_both_spellings() -> None:
    hub = ModelConfig.from_hf(RAW)
    ours = {key: value for key, value in RAW.items() if key != "num_experts"}
    assert ModelConfig.from_hf({**ours, "num_local_experts": 4}) == hub
    assert hub.moe is not None
    assert (hub.moe.num_experts, hub.moe.experts_per_token, hub.moe.intermediate_size) == (4, 2, 16)
    assert not hub.moe.renormalize
    assert ModelConfig.from_hf({**RAW, "model_type": "qwen3"}).moe is None
    assert ModelConfig.from_hf({**RAW, "num_experts": 0}).moe is None


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({}, [0, 1, 2, 3]),
        ({"decoder_sparse_step": 2}, [1, 3]),
        ({"mlp_only_layers": [0, 3]}, [1, 2]),
        ({"decoder_sparse_step": 2, "mlp_only_layers": [1]}, [3]),
    ],
)
@pytest.mark.usefixtures("single_rank")
def test_which_layers_have_experts(changes: dict[str, Any], layers: list[int]) -> None:
    config = ModelConfig.from_hf({**RAW, **changes})
    assert [layer_id for layer_id in range(4) if config.has_experts(layer_id)] == layers
    with torch.device("meta"):
        names = create_model(config).state_dict()
    assert [n for n in range(4) if f"model.layers.{n}.mlp.experts.down_proj" in names] == layers
    dense = [n for n in range(4) if f"model.layers.{n}.mlp.gate_up_proj.weight" in names]
    assert dense == [n for n in range(4) if n not in layers]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_experts_per_tok": 5}, "num_experts_per_tok=5 of 4 experts"),
        ({"num_experts_per_tok": 0}, "num_experts_per_tok=0 of 4 experts"),
        ({"decoder_sparse_step": 0}, "decoder_sparse_step is 0"),
    ],
)
def test_impossible_experts_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig.from_hf({**RAW, **changes})


@pytest.mark.parametrize("size", [1, 2])
def test_ranks_stacks_make_up_the_whole(tiny_moe: Path, size: int) -> None:
    config = ModelConfig.from_hf(load_hf_config(tiny_moe))
    given = load_file(tiny_moe / "model.safetensors")
    shares = []
    for rank in range(size):
        reset_tp_info()
        set_tp_info(DistributedInfo(rank, size))
        shares.append(dict(load_weights(tiny_moe, config, torch.float32, CPU)))
    prefix = "model.layers.1.mlp."
    assert config.moe is not None
    for expert in range(config.moe.num_experts):
        gates, ups = zip(
            *(share[f"{prefix}experts.gate_up_proj"][expert].chunk(2) for share in shares), strict=True
        )
        downs = [share[f"{prefix}experts.down_proj"][expert] for share in shares]
        source = f"{prefix}experts.{expert}."
        assert torch.equal(torch.cat(gates), given[f"{source}gate_proj.weight"])
        assert torch.equal(torch.cat(ups), given[f"{source}up_proj.weight"])
        assert torch.equal(torch.cat(downs, dim=1), given[f"{source}down_proj.weight"])
    assert all(torch.equal(share[f"{prefix}gate.weight"], given[f"{prefix}gate.weight"]) for share in shares)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("drop", r"layers\.2\.mlp\.experts\.gate_up_proj lacks up_proj of expert 5"),
        (
            "extra",
            r"layers\.2\.mlp\.experts\.gate_up_proj: up_proj of expert 8 is one more than config\.json",
        ),
        ("shape", r"up_proj of expert 5 is \(31, 64\), others \(32, 64\)"),
    ],
)
@pytest.mark.usefixtures("single_rank")
def test_stacks_that_do_not_fit_are_refused(
    tiny_moe: Path, tmp_path: Path, change: str, message: str
) -> None:
    config = ModelConfig.from_hf(load_hf_config(tiny_moe))
    tensors = load_file(tiny_moe / "model.safetensors")
    name = "model.layers.2.mlp.experts.{}.up_proj.weight"
    if change == "drop":
        del tensors[name.format(5)]
    elif change == "extra":
        tensors[name.format(8)] = tensors[name.format(5)].clone()
    else:
        tensors[name.format(5)] = tensors[name.format(5)][1:].clone()
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=message):
        dict(load_weights(tmp_path, config, torch.float32, CPU))


@pytest.fixture(scope="module")
def wanted(tiny_moe: Path) -> list[list[int]]:
    model = load_reference(tiny_moe)
    answers = []
    for prompt in PROMPTS:
        tokens, gap = greedy(model, prompt, NEW_TOKENS)
        assert gap > MIN_GAP, f"prompt {prompt} comes to a near tie and proves nothing"
        answers.append(tokens)
    return answers


@pytest.mark.parametrize("moe_backend", BACKENDS)
@pytest.mark.parametrize(("attention", "page_size"), [("torch", 1), ("fi", 1), ("fa,fi", 4)])
def test_generates_what_transformers_does(
    tiny_moe: Path, wanted: list[list[int]], moe_backend: str, attention: str, page_size: int
) -> None:
    engine = build_engine(tiny_moe, attention, page_size, moe_backend=moe_backend)
    assert generate(engine, PROMPTS, NEW_TOKENS) == wanted
    engine.shutdown()


def test_dense_and_sparse_layers_in_one_model(tmp_path: Path) -> None:
    """A model whose second layer is dense and whose routing is not scaled, against transformers."""
    import transformers

    config = transformers.Qwen3MoeConfig(
        **{key: value for key, value in RAW.items() if key not in ("architectures", "model_type")},
        head_dim=8,
        mlp_only_layers=[1],
        norm_topk_prob=False,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    model = transformers.Qwen3MoeForCausalLM(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(1.0 if "norm" in name else 0.0, 0.02 if "norm" in name else 0.3)
    model.save_pretrained(tmp_path)
    prompt = [3, 14, 15, 9, 2, 6]
    tokens, gap = greedy(load_reference(tmp_path), prompt, 8)
    assert gap > MIN_GAP
    engine = build_engine(tmp_path, max_seq_len_override=32, num_page_override=64)
    assert generate(engine, [prompt], 8) == [tokens]
    engine.shutdown()
