from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from minisgl.distributed import DistributedInfo, reset_tp_info, set_tp_info
from minisgl.models.config import ModelConfig
from minisgl.models.register import create_model
from minisgl.models.weight import load_weights
from minisgl.utils.hf import load_hf_config, resolve_model
from minisgl.utils.torch_utils import default_dtype

BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 101,
    "max_position_embeddings": 256,
}
CPU = torch.device("cpu")


def config(**changes: Any) -> ModelConfig:
    return ModelConfig.from_hf({**BASE, **changes})


@pytest.mark.parametrize(
    "spelling",
    [
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2.0}},
    ],
)
def test_rope_in_every_spelling(spelling: dict[str, Any]) -> None:
    rotary = config(**spelling).rotary_config
    assert rotary.base == 5e5
    assert dict(rotary.scaling) == {"rope_type": "linear", "factor": 2.0}


def test_defaults() -> None:
    plain = config(num_key_value_heads=None)
    assert (plain.head_dim, plain.num_kv_heads, plain.gqa_group) == (8, 8, 1)
    assert plain.rotary_config.base == 10000.0
    assert dict(plain.rotary_config.scaling) == {}
    assert plain.eos_token_ids == ()
    assert config(head_dim=16).head_dim == 16


def test_eos_may_be_a_list() -> None:
    assert config(eos_token_id=[3, 5]).eos_token_ids == (3, 5)
    assert config(eos_token_id=0).eos_token_ids == (0,)


@pytest.mark.parametrize(
    ("model_type", "changes", "switches"),
    [
        ("llama", {}, (False, False, False)),
        ("llama", {"attention_bias": True}, (True, True, False)),
        ("qwen2", {}, (True, False, False)),
        ("qwen3", {}, (False, False, True)),
    ],
)
def test_architectures_differ_by_switches(
    model_type: str, changes: dict[str, Any], switches: tuple[bool, ...]
) -> None:
    read = config(model_type=model_type, **changes)
    assert (read.qkv_bias, read.o_bias, read.qk_norm) == switches


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": None}, "no 'hidden_size'"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"num_key_value_heads": 3}, "8 query heads cannot share 3 KV heads"),
        ({"model_type": "mistral", "sliding_window": 4096}, "sliding-window attention is on"),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True}, "sliding-window"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding-window"),
    ],
)
def test_what_the_engine_cannot_do_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**changes)


def test_a_window_that_is_switched_off_is_no_window() -> None:
    config(model_type="qwen2", sliding_window=4096, use_sliding_window=False)
    config(model_type="mistral", sliding_window=None)


@pytest.mark.usefixtures("single_rank")
def test_unknown_architectures_are_answered_with_the_known() -> None:
    with pytest.raises(ValueError, match=r"unknown model architecture 'GPT2LMHeadModel': choose from Llama"):
        create_model(config(architectures=["GPT2LMHeadModel"]))


def hf_tensors(model: ModelConfig) -> dict[str, torch.Tensor]:
    """A checkpoint as transformers would save it, with values that tell every row and column apart."""
    generator = torch.Generator().manual_seed(0)
    heads, kv, dim, hidden, width = (
        model.num_qo_heads,
        model.num_kv_heads,
        model.head_dim,
        model.hidden_size,
        model.intermediate_size,
    )
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (model.vocab_size, hidden),
        "model.norm.weight": (hidden,),
        "lm_head.weight": (model.vocab_size, hidden),
    }
    for layer in range(model.num_layers):
        prefix = f"model.layers.{layer}."
        shapes |= {
            f"{prefix}input_layernorm.weight": (hidden,),
            f"{prefix}post_attention_layernorm.weight": (hidden,),
            f"{prefix}self_attn.q_proj.weight": (heads * dim, hidden),
            f"{prefix}self_attn.k_proj.weight": (kv * dim, hidden),
            f"{prefix}self_attn.v_proj.weight": (kv * dim, hidden),
            f"{prefix}self_attn.o_proj.weight": (hidden, heads * dim),
            f"{prefix}mlp.gate_proj.weight": (width, hidden),
            f"{prefix}mlp.up_proj.weight": (width, hidden),
            f"{prefix}mlp.down_proj.weight": (hidden, width),
        }
        if model.qkv_bias:
            shapes |= {
                f"{prefix}self_attn.{part}_proj.bias": ((heads if part == "q" else kv) * dim,)
                for part in "qkv"
            }
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def save_in_shards(tensors: dict[str, torch.Tensor], folder: Path, shards: int) -> None:
    names = list(tensors)
    for shard in range(shards):
        part = {name: tensors[name] for name in names[shard::shards]}
        save_file(part, folder / f"model-{shard:05}-of-{shards:05}.safetensors")


def load_all(folder: Path, model: ModelConfig, rank: int, size: int) -> dict[str, torch.Tensor]:
    reset_tp_info()
    set_tp_info(DistributedInfo(rank, size))
    return dict(load_weights(folder, model, torch.float32, CPU))


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("model_type", ["llama", "qwen2"])
def test_a_checkpoint_fills_the_model(tmp_path: Path, shards: int, model_type: str) -> None:
    model_config = config(model_type=model_type)
    tensors = hf_tensors(model_config)
    save_in_shards(
        {**tensors, "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}, tmp_path, shards
    )
    set_tp_info(DistributedInfo(0, 1))
    with torch.device("meta"), default_dtype(torch.bfloat16):
        model = create_model(model_config)
    model.load_state_dict(load_weights(tmp_path, model_config, torch.bfloat16, CPU))
    loaded = model.state_dict()
    assert all(tensor.device == CPU for tensor in loaded.values())
    prefix = "model.layers.1.self_attn."
    merged = torch.cat([tensors[f"{prefix}{part}_proj.weight"] for part in "qkv"]).bfloat16()
    assert torch.equal(loaded[f"{prefix}qkv_proj.weight"], merged)


@pytest.mark.parametrize("size", [2, 4, 8])
def test_ranks_shares_make_up_the_whole(tmp_path: Path, size: int) -> None:
    model = config()
    tensors = hf_tensors(model)
    save_in_shards(tensors, tmp_path, 1)
    shares = [load_all(tmp_path, model, rank, size) for rank in range(size)]
    prefix = "model.layers.0."
    heads, kv = model.num_qo_heads // size, max(model.num_kv_heads // size, 1)
    q, k, v = zip(
        *(share[f"{prefix}self_attn.qkv_proj.weight"].split([heads * 8, kv * 8, kv * 8]) for share in shares),
        strict=True,
    )
    copies = max(size // model.num_kv_heads, 1)
    assert torch.equal(torch.cat(q), tensors[f"{prefix}self_attn.q_proj.weight"])
    assert torch.equal(torch.cat(k[::copies]), tensors[f"{prefix}self_attn.k_proj.weight"])
    assert torch.equal(torch.cat(v[::copies]), tensors[f"{prefix}self_attn.v_proj.weight"])
    assert all(torch.equal(k[rank], k[rank // copies * copies]) for rank in range(size))
    gate, up = zip(*(share[f"{prefix}mlp.gate_up_proj.weight"].chunk(2) for share in shares), strict=True)
    assert torch.equal(torch.cat(gate), tensors[f"{prefix}mlp.gate_proj.weight"])
    assert torch.equal(torch.cat(up), tensors[f"{prefix}mlp.up_proj.weight"])
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        pieces = [share[f"{prefix}{name}.weight"] for share in shares]
        assert torch.equal(torch.cat(pieces, dim=1), tensors[f"{prefix}{name}.weight"])
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        whole = torch.cat([share[name] for share in shares])
        assert torch.equal(whole[:101], tensors[name])
        assert whole[101:].abs().sum() == 0
        assert len({share[name].shape for share in shares}) == 1
    assert torch.equal(shares[-1]["model.norm.weight"], tensors["model.norm.weight"])


def test_few_tensors_are_held_at_once(tmp_path: Path) -> None:
    import gc
    import weakref

    model = config(num_hidden_layers=6)
    tensors = hf_tensors(model)
    save_in_shards(tensors, tmp_path, 1)
    set_tp_info(DistributedInfo(0, 1))
    alive: list[weakref.ref[torch.Tensor]] = []
    most = 0
    for _, tensor in load_weights(tmp_path, model, torch.float32, CPU):
        alive.append(weakref.ref(tensor))
        del tensor
        gc.collect()
        most = max(most, sum(ref() is not None for ref in alive))
    assert most <= 1  # the generator keeps at most what it has just given away


@pytest.mark.usefixtures("single_rank")
def test_incomplete_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no \*\.safetensors"):
        dict(load_weights(tmp_path, config(), torch.float32, CPU))
    tensors = hf_tensors(config())
    del tensors["model.layers.1.self_attn.k_proj.weight"]
    save_in_shards(tensors, tmp_path, 1)
    with pytest.raises(
        ValueError, match=r"layers\.1\.self_attn\.qkv_proj\.weight cannot be put together without k_proj"
    ):
        dict(load_weights(tmp_path, config(), torch.float32, CPU))


def test_tied_embeddings_need_no_head(tmp_path: Path) -> None:
    model_config = config(tie_word_embeddings=True)
    save_in_shards(hf_tensors(model_config), tmp_path, 1)  # with an lm_head, as some checkpoints have
    set_tp_info(DistributedInfo(0, 1))
    with torch.device("meta"):
        model = create_model(model_config)
    assert "lm_head.weight" not in model.state_dict()
    model.load_state_dict(load_weights(tmp_path, model_config, torch.float32, CPU))


def test_model_folders(tmp_path: Path) -> None:
    assert resolve_model(str(tmp_path)) == tmp_path
    for missing in (str(tmp_path / "none"), "./none", "none", "a/b/c"):
        with pytest.raises(FileNotFoundError, match="no model folder"):
            resolve_model(missing)
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        load_hf_config(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        load_hf_config(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ValueError, match="should hold an object"):
        load_hf_config(tmp_path)
