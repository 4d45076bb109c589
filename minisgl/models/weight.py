"""From a checkpoint's tensors to this rank's weights, as a stream.

Checkpoints keep q, k, v and gate, up apart, and every expert for itself; the layers want them merged, the
experts stacked, and each rank wants only its share. Every tensor is cut as soon as it is read, waits only for
the others that it is merged with, and goes on to the device: at no time are more than a few of them on the
host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors import safe_open

from minisgl.distributed.info import get_tp_info
from minisgl.models.config import ModelConfig
from minisgl.utils.misc import div_ceil

# Merged layer -> the checkpoint's layers that it is made of, in the order in which they are put together.
MERGED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}
_MERGED_INTO = {part: merged for merged, parts in MERGED.items() for part in parts}

_KV_PARTS = frozenset({"k_proj", "v_proj"})
_CUT_BY_COLUMNS = frozenset({"q_proj", "gate_proj", "up_proj"})
_CUT_BY_ROWS = frozenset({"o_proj", "down_proj"})
_CUT_BY_VOCABULARY = frozenset({"embed_tokens", "lm_head"})

# "model.layers.0.mlp.experts.3." -> where the experts are, and which one this is.
_EXPERT = re.compile(r"(.*\.experts\.)(\d+)\.")


def load_weights(
    folder: Path, config: ModelConfig, dtype: torch.dtype, device: torch.device
) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and weight, merged and cut for this rank, of every tensor in the folder's safetensors files.

    FileNotFoundError if there are none; ValueError for an expert that config.json does not count and, at the
    end, if a tensor came without those it is merged with.
    """
    waiting: dict[str, dict[str, torch.Tensor]] = {}
    stacks: dict[str, ExpertStack] = {}
    for name, tensor in _read_safetensors(folder):
        if _is_unused(name, config):
            continue
        layer_name, layer, kind = _split_name(name)
        part = _cut(tensor, layer, kind, config).to(dtype)
        merged = _MERGED_INTO.get(layer)
        expert = _EXPERT.fullmatch(layer_name)
        if expert is not None and config.moe is not None:
            full_name = f"{expert[1]}{merged or layer}"
            if full_name not in stacks:
                pieces = MERGED[merged] if merged else (layer,)
                stacks[full_name] = ExpertStack(full_name, config.moe.num_experts, pieces, part, device)
            stacks[full_name].put(int(expert[2]), layer, part)
            if not stacks[full_name].missing:
                yield full_name, stacks.pop(full_name).tensor
            continue
        if merged is None:
            yield name, part.to(device)
            continue
        full_name = f"{layer_name}{merged}.{kind}"
        parts = waiting.setdefault(full_name, {})
        parts[layer] = part
        if len(parts) == len(MERGED[merged]):
            del waiting[full_name]
            yield full_name, torch.cat([parts[piece] for piece in MERGED[merged]]).to(device)
    for full_name, parts in waiting.items():
        merged = full_name.split(".")[-2]
        missing = [piece for piece in MERGED[merged] if piece not in parts]
        raise ValueError(f"{folder}: {full_name} cannot be put together without {', '.join(missing)}")
    for full_name, stack in stacks.items():
        expert_id, piece = min(stack.missing)
        more = f" and {len(stack.missing) - 1} more" if len(stack.missing) > 1 else ""
        raise ValueError(f"{folder}: {full_name} lacks {piece} of expert {expert_id}{more}")


class ExpertStack:
    """One matrix of every expert of a layer, put together on the device as its pieces arrive.

    tensor: [num_experts, rows, columns]; an expert's pieces lie on top of each other, in order.
    missing: (expert, piece) that have not come yet.

    Invariant: the host holds none of it; the memory is the one that the weight will have.
    """

    def __init__(
        self, name: str, num_experts: int, pieces: Sequence[str], like: torch.Tensor, device: torch.device
    ) -> None:
        """`like` is any one piece: all have its shape [n, columns] and its dtype."""
        self._name = name
        self._pieces = tuple(pieces)
        self._by_piece = like.new_empty((num_experts, len(pieces), *like.shape), device=device)
        self.missing = {(expert, piece) for expert in range(num_experts) for piece in pieces}

    @property
    def tensor(self) -> torch.Tensor:
        return self._by_piece.flatten(1, 2)

    def put(self, expert: int, piece: str, part: torch.Tensor) -> None:
        """Copy one piece to its place. ValueError for an expert out of range, a piece that came before, or
        one of another shape."""
        if (expert, piece) not in self.missing:
            fault = "came twice" if expert < len(self._by_piece) else "is one more than config.json counts"
            raise ValueError(f"{self._name}: {piece} of expert {expert} {fault}")
        place = self._by_piece[expert, self._pieces.index(piece)]
        if part.shape != place.shape:
            raise ValueError(
                f"{self._name}: {piece} of expert {expert} is {tuple(part.shape)}, others {tuple(place.shape)}"
            )
        place.copy_(part)
        self.missing.remove((expert, piece))


def _read_safetensors(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{folder} has no *.safetensors file; other formats of weights are not read")
    for file in files:
        with safe_open(file, framework="pt", device="cpu") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a dict)
                yield name, tensors.get_tensor(name)


def _is_unused(name: str, config: ModelConfig) -> bool:
    """Tensors that some checkpoints carry and the model computes or shares instead."""
    return name.endswith(".rotary_emb.inv_freq") or (config.tie_word_embeddings and name == "lm_head.weight")


def _split_name(name: str) -> tuple[str, str, str]:
    """ "model.layers.0.self_attn.q_proj.weight" -> ("model.layers.0.self_attn.", "q_proj", "weight")."""
    owner, _, kind = name.rpartition(".")
    prefix, dot, layer = owner.rpartition(".")
    return prefix + dot, layer, kind


def _cut(tensor: torch.Tensor, layer: str, kind: str, config: ModelConfig) -> torch.Tensor:
    """This rank's share of a tensor."""
    tp = get_tp_info()
    if layer in _CUT_BY_VOCABULARY:
        share = div_ceil(config.vocab_size, tp.size)
        rows = tensor[share * tp.rank : share * (tp.rank + 1)]
        # The last rank's share may be short; every rank's matrix has the same shape.
        padding = rows.new_zeros(share - len(rows), rows.shape[1])
        return torch.cat([rows, padding]) if len(padding) else rows
    if tp.size == 1:
        return tensor
    if layer in _KV_PARTS and tp.size > config.num_kv_heads:
        head = tp.rank * config.num_kv_heads // tp.size
        return tensor[head * config.head_dim : (head + 1) * config.head_dim]
    if layer in _CUT_BY_COLUMNS or layer in _KV_PARTS:
        return tensor.chunk(tp.size, dim=0)[tp.rank]
    if layer in _CUT_BY_ROWS and kind == "weight":
        return tensor.chunk(tp.size, dim=1)[tp.rank]
    return tensor
