"""Chapter 3: checkpoints of any spelling become one configuration and one set of merged weights."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from minisgl.distributed import DistributedInfo, reset_tp_info, set_tp_info
from minisgl.models.config import ModelConfig
from minisgl.models.register import create_model
from minisgl.models.weight import load_weights
from minisgl.utils.hf import load_eos_token_ids, load_hf_config

RAW = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 10,
    "max_position_embeddings": 32,
}
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _single_rank() -> None:
    set_tp_info(DistributedInfo(0, 1))


def checkpoint(folder: Path) -> dict[str, torch.Tensor]:
    shapes = {
        "model.embed_tokens.weight": (10, 16),
        "model.norm.weight": (16,),
        "lm_head.weight": (10, 16),
        "model.layers.0.input_layernorm.weight": (16,),
        "model.layers.0.post_attention_layernorm.weight": (16,),
        "model.layers.0.self_attn.q_proj.weight": (16, 16),
        "model.layers.0.self_attn.k_proj.weight": (8, 16),
        "model.layers.0.self_attn.v_proj.weight": (8, 16),
        "model.layers.0.self_attn.o_proj.weight": (16, 16),
        "model.layers.0.mlp.gate_proj.weight": (24, 16),
        "model.layers.0.mlp.up_proj.weight": (24, 16),
        "model.layers.0.mlp.down_proj.weight": (16, 24),
    }
    tensors = {name: torch.randn(shape) for name, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(RAW), encoding="utf-8")
    return tensors


def test_parts_are_merged_in_order(tmp_path: Path) -> None:
    tensors = checkpoint(tmp_path)
    config = ModelConfig.from_hf(load_hf_config(tmp_path))
    loaded = dict(load_weights(tmp_path, config, torch.float32, CPU))
    p = "model.layers.0."
    qkv = torch.cat([tensors[f"{p}self_attn.{n}_proj.weight"] for n in "qkv"])
    assert torch.equal(loaded[p + "self_attn.qkv_proj.weight"], qkv)
    gate_up = torch.cat([tensors[f"{p}mlp.{n}_proj.weight"] for n in ("gate", "up")])
    assert torch.equal(loaded[p + "mlp.gate_up_proj.weight"], gate_up)
    with torch.device("meta"):
        model = create_model(config)
    model.load_state_dict(loaded)


def test_two_ranks_have_all_of_it_between_them(tmp_path: Path) -> None:
    tensors = checkpoint(tmp_path)
    config = ModelConfig.from_hf(RAW)
    shares = []
    for rank in range(2):
        reset_tp_info()
        set_tp_info(DistributedInfo(rank, 2))
        shares.append(dict(load_weights(tmp_path, config, torch.float32, CPU)))
    down = "model.layers.0.mlp.down_proj.weight"
    assert torch.equal(torch.cat([share[down] for share in shares], dim=1), tensors[down])
    q = torch.cat([share["model.layers.0.self_attn.qkv_proj.weight"][:8] for share in shares])
    assert torch.equal(q, tensors["model.layers.0.self_attn.q_proj.weight"])


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    tensors = checkpoint(tmp_path)
    del tensors["model.layers.0.mlp.up_proj.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"gate_up_proj\.weight cannot be put together without up_proj"):
        list(load_weights(tmp_path, ModelConfig.from_hf(RAW), torch.float32, CPU))


def test_spellings_of_a_configuration() -> None:
    old = ModelConfig.from_hf({**RAW, "rope_theta": 5e5})
    new = ModelConfig.from_hf({**RAW, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}})
    assert old == new
    assert old.head_dim == 4
    assert ModelConfig.from_hf({**RAW, "model_type": "qwen2"}).qkv_bias
    assert ModelConfig.from_hf({**RAW, "model_type": "qwen3"}).qk_norm
    for wrong, word in (({"hidden_act": "gelu"}, "hidden_act"), ({"sliding_window": 4096}, "sliding-window")):
        with pytest.raises(ValueError, match=word):
            ModelConfig.from_hf({**RAW, **wrong})
    with pytest.raises(ValueError, match="unknown model architecture 'Mamba'"):
        create_model(ModelConfig.from_hf({**RAW, "architectures": ["Mamba"]}))


def test_ends_of_text_are_gathered_from_both_files(tmp_path: Path) -> None:
    assert load_eos_token_ids(tmp_path) == frozenset()
    (tmp_path / "config.json").write_text('{"eos_token_id": 2}', encoding="utf-8")
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [2, 7]}', encoding="utf-8")
    assert load_eos_token_ids(tmp_path) == {2, 7}
    (tmp_path / "generation_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"generation_config\.json is not JSON"):
        load_eos_token_ids(tmp_path)
