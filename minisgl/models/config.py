"""The numbers that describe a decoder-only model, read from a Hugging Face config.json.

One frozen record for every architecture we know: they differ by a few switches (a bias on q, k, v in Qwen2, a
norm on each head in Qwen3), and those switches are written here in full, so that no other file asks for a
model's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RotaryConfig:
    """Rotary position embedding.

    head_dim: dimensions that are rotated (all of a head).
    max_position: positions that the table of angles covers.
    base: theta.
    scaling: what config.json says about stretching to longer contexts, with "rope_type"; empty for none.
    """

    head_dim: int
    max_position: int
    base: float
    scaling: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.head_dim, self.max_position, self.base, repr(sorted(self.scaling.items()))))


@dataclass(frozen=True)
class MoEConfig:
    """Experts in place of the MLP.

    num_experts: of one layer. experts_per_token: how many of them a token goes to.
    intermediate_size: width of one expert.
    renormalize: scale the chosen experts' probabilities to sum to 1.
    sparse_step: layers sparse_step - 1, 2 sparse_step - 1, ... have experts.
    dense_layers: layers that have a plain MLP all the same.
    """

    num_experts: int
    experts_per_token: int
    intermediate_size: int
    renormalize: bool
    sparse_step: int = 1
    dense_layers: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if not 1 <= self.experts_per_token <= self.num_experts:
            raise ValueError(
                f"config.json: a token cannot go to num_experts_per_tok={self.experts_per_token} "
                f"of {self.num_experts} experts"
            )
        if self.sparse_step < 1:
            raise ValueError(
                f"config.json: decoder_sparse_step is {self.sparse_step}; it should be at least 1"
            )


@dataclass(frozen=True)
class ModelConfig:
    """Sizes are in elements; heads are those of the whole model, not of one rank. `moe` is None without
    experts."""

    architecture: str
    num_layers: int
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    rms_norm_eps: float
    rotary_config: RotaryConfig
    tie_word_embeddings: bool
    qkv_bias: bool
    o_bias: bool
    qk_norm: bool
    eos_token_ids: tuple[int, ...] = ()
    moe: MoEConfig | None = None

    def __post_init__(self) -> None:
        if self.num_qo_heads % self.num_kv_heads:
            raise ValueError(
                f"{self.num_qo_heads} query heads cannot share {self.num_kv_heads} KV heads evenly: "
                "check num_attention_heads and num_key_value_heads"
            )

    @property
    def gqa_group(self) -> int:
        """Query heads that read the same KV head."""
        return self.num_qo_heads // self.num_kv_heads

    def has_experts(self, layer_id: int) -> bool:
        """Whether that layer has experts in place of its MLP."""
        moe = self.moe
        return moe is not None and layer_id not in moe.dense_layers and (layer_id + 1) % moe.sparse_step == 0

    @classmethod
    def from_hf(cls, raw: Mapping[str, Any]) -> ModelConfig:
        """From the dict that config.json holds, in the spelling of transformers 4 or 5.

        ValueError that names the key for one that is missing, for an activation other than SiLU and for
        sliding-window attention that is switched on, neither of which the engine has.
        """
        model_type = raw.get("model_type", "")
        hidden = _need(raw, "hidden_size")
        heads = _need(raw, "num_attention_heads")
        head_dim = raw.get("head_dim") or hidden // heads
        activation = raw.get("hidden_act", "silu")
        if activation != "silu":
            raise ValueError(f"config.json: hidden_act is {activation!r}; only 'silu' is built")
        if _uses_sliding_window(raw, model_type):
            raise ValueError("config.json: sliding-window attention is on; only full attention is built")
        attention_bias = bool(raw.get("attention_bias", False))
        eos = raw.get("eos_token_id")
        base, scaling = _rope(raw)
        return cls(
            architecture=(raw.get("architectures") or [""])[0],
            num_layers=_need(raw, "num_hidden_layers"),
            num_qo_heads=heads,
            num_kv_heads=raw.get("num_key_value_heads") or heads,
            head_dim=head_dim,
            hidden_size=hidden,
            intermediate_size=_need(raw, "intermediate_size"),
            vocab_size=_need(raw, "vocab_size"),
            rms_norm_eps=float(raw.get("rms_norm_eps", 1e-6)),
            rotary_config=RotaryConfig(head_dim, _need(raw, "max_position_embeddings"), base, scaling),
            tie_word_embeddings=bool(raw.get("tie_word_embeddings", False)),
            # Qwen2 always has a bias on q, k, v and never on o; in the others one switch covers all four.
            qkv_bias=attention_bias or model_type == "qwen2",
            o_bias=attention_bias and model_type != "qwen2",
            qk_norm=model_type.startswith("qwen3"),
            eos_token_ids=() if eos is None else tuple(eos) if isinstance(eos, list) else (eos,),
            moe=_moe(raw) if model_type == "qwen3_moe" else None,
        )


def _need(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key)
    if value is None:
        raise ValueError(f"config.json has no {key!r}: is this a decoder-only language model?")
    return int(value)


def _rope(raw: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    """theta and scaling: transformers 5 keeps both in `rope_parameters`, hub files mostly at top level."""
    parameters = dict(raw.get("rope_parameters") or raw.get("rope_scaling") or {})
    base = float(parameters.pop("rope_theta", None) or raw.get("rope_theta") or 10000.0)
    kind = parameters.pop("rope_type", None) or parameters.pop("type", None) or "default"
    parameters.pop("type", None)
    return base, {} if kind == "default" else {"rope_type": kind, **parameters}


def _moe(raw: Mapping[str, Any]) -> MoEConfig | None:
    """The experts of a Qwen3-MoE: hub files count them in `num_experts`, transformers 5 writes
    `num_local_experts`. Defaults are those of transformers."""
    num_experts = raw.get("num_experts", raw.get("num_local_experts", 128))
    if num_experts == 0:
        return None
    return MoEConfig(
        num_experts=num_experts,
        experts_per_token=raw.get("num_experts_per_tok", 8),
        intermediate_size=raw.get("moe_intermediate_size", 768),
        renormalize=bool(raw.get("norm_topk_prob", False)),
        sparse_step=raw.get("decoder_sparse_step", 1),
        dense_layers=frozenset(raw.get("mlp_only_layers") or ()),
    )


def _uses_sliding_window(raw: Mapping[str, Any], model_type: str) -> bool:
    if "sliding_attention" in (raw.get("layer_types") or ()):
        return True
    # Qwen writes a window's size even where a second key switches it off; Mistral has only the size.
    switched_on = raw.get("use_sliding_window", not model_type.startswith("qwen"))
    return bool(switched_on) and raw.get("sliding_window") is not None
