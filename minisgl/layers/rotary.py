"""Rotary position embedding: pairs of dimensions of q and k are turned by an angle that grows with the
position.

Dimension i is paired with i + D/2 (the "neox" order). Angles are tabulated once, in float32, for every
position that the model knows; layers of one model share the table. Models stretched to longer contexts
change the frequencies (llama3, yarn, linear), and yarn also scales the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch

from minisgl.layers.base import StateLessOP
from minisgl.models.config import RotaryConfig


class RotaryEmbedding(StateLessOP):
    """`cos_sin` is float32 [max_position, head_dim]: cosines of the D/2 angles, then their sines.

    It moves to the device of the first positions that it sees, and stays there.
    """

    def __init__(self, config: RotaryConfig) -> None:
        inv_freq, factor = inverse_frequencies(config)
        angles = torch.outer(torch.arange(config.max_position, dtype=torch.float32), inv_freq)
        self.cos_sin = torch.cat([angles.cos() * factor, angles.sin() * factor], dim=-1)

    def forward(
        self, positions: torch.Tensor, q: torch.Tensor, k: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """positions int32 [tokens]; q, k [tokens, heads, D]. Returns new tensors, shaped and typed alike."""
        if self.cos_sin.device != positions.device:
            self.cos_sin = self.cos_sin.to(positions.device)
        cos, sin = self.cos_sin.index_select(0, positions).unsqueeze(1).chunk(2, dim=-1)
        return _rotate(q, cos, sin), _rotate(k, cos, sin)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn x [tokens, heads, D] by angles given as [tokens, 1, D/2]; the products are float32."""
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


@lru_cache(maxsize=4)
def get_rope(config: RotaryConfig) -> RotaryEmbedding:
    """The embedding of a configuration; the layers of a model share one."""
    # The model around it may be under construction on the meta device; the table has values from the start.
    with torch.device("cpu"):
        return RotaryEmbedding(config)


def inverse_frequencies(config: RotaryConfig) -> tuple[torch.Tensor, float]:
    """Radians a position for each of the D/2 pairs, float32 [D/2], and the factor on cosines and sines.

    ValueError for a scaling that is not known, or lacks one of its parameters.
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    inv_freq = 1.0 / config.base**exponents
    kind = config.scaling.get("rope_type", "default")
    try:
        if kind == "default":
            return inv_freq, 1.0
        if kind == "linear":
            return inv_freq / config.scaling["factor"], 1.0
        if kind == "llama3":
            return _llama3(inv_freq, config.scaling), 1.0
        if kind == "yarn":
            return _yarn(inv_freq, config)
    except KeyError as error:
        raise ValueError(f"RoPE scaling {kind!r} needs {error}, which config.json lacks") from error
    raise ValueError(f"RoPE scaling {kind!r} is not built; known are default, linear, llama3, yarn")


def _llama3(inv_freq: torch.Tensor, scaling: Mapping[str, Any]) -> torch.Tensor:
    """Slow pairs are slowed by `factor`, fast ones left alone, with a linear passage between.

    A pair is slow if its wave is longer than original length / low_freq_factor, fast if it is shorter than
    original length / high_freq_factor.
    """
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * inv_freq / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return keep * inv_freq + (1.0 - keep) * inv_freq / scaling["factor"]


def _yarn(inv_freq: torch.Tensor, config: RotaryConfig) -> tuple[torch.Tensor, float]:
    """Like llama3 with the passage linear in the pair's index, plus a factor that sharpens attention."""
    scaling = config.scaling
    factor = scaling["factor"]
    original = scaling.get("original_max_position_embeddings") or config.max_position
    half = len(inv_freq)

    def pair_that_turns(times: float) -> float:
        """Index (not whole) of the pair that makes this many turns over the original length."""
        return half * math.log(original / (times * 2 * math.pi)) / math.log(config.base)

    first = pair_that_turns(scaling.get("beta_fast") or 32)
    last = pair_that_turns(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, config.head_dim - 1)
    passage = (torch.arange(half, dtype=torch.float32) - first) / (last - first or 0.001)
    slowed = passage.clamp(0.0, 1.0)

    attention = scaling.get("attention_factor")
    if attention is None:
        attention = _yarn_sharpening(scaling, factor)
    return inv_freq * (1.0 - slowed) + inv_freq / factor * slowed, float(attention)


def _yarn_sharpening(scaling: Mapping[str, Any], factor: float) -> float:
    def by(mscale: float) -> float:
        return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0

    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return by(scaling["mscale"]) / by(scaling["mscale_all_dim"])
    return by(1.0)
