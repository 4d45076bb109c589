"""Chapter 2: layers that know their weights, and a decoder that gives the same answer in one prefill or in steps.

Prints the names of a small decoder's weights, the error for a weight too many, and the difference between a prefill
of 5 tokens and a prefill of 3 followed by 2 decodes. Pool and backend come in later chapters; here two small
classes of this file stand where they will be.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import torch.nn.functional as F

from minisgl.core import Batch, Context, Phase, Req, SamplingParams, set_global_ctx
from minisgl.distributed import DistributedInfo, set_tp_info
from minisgl.models.config import ModelConfig
from minisgl.models.decoder import DecoderForCausalLM

CONFIG = ModelConfig.from_hf(
    {
        "model_type": "qwen3",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": 128,
        "max_position_embeddings": 64,
        "tie_word_embeddings": True,
    }
)
TOKENS = [11, 42, 7, 99, 63]


class LastRows:
    """One request: its last query row is the last row."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def get_last_indices(self, bs: int) -> torch.Tensor:
        return torch.tensor([self.rows - 1])


class OneRequestAttention:
    """Keys and values of one request, in a list a layer."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        if layer_id in self.kept:
            before_k, before_v = self.kept[layer_id]
            k, v = torch.cat([before_k, k]), torch.cat([before_v, v])
        self.kept[layer_id] = (k, v)
        n, kv_len = len(q), len(k)
        seen = torch.arange(kv_len) <= torch.arange(kv_len - n, kv_len).unsqueeze(1)
        heads = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
        return F.scaled_dot_product_attention(*heads, attn_mask=seen, enable_gqa=True)[0].transpose(0, 1)


def step(model: DecoderForCausalLM, ctx: Context, phase: Phase, first: int, end: int) -> torch.Tensor:
    ids = torch.tensor(TOKENS[:end], dtype=torch.int32)
    batch = Batch([Req(ids, 0, first, 4, 0, SamplingParams(), None)], phase)
    batch.input_ids = ids[first:]
    batch.positions = torch.arange(first, end, dtype=torch.int32)
    batch.attn_metadata = LastRows(end - first)  # type: ignore[assignment]
    with torch.inference_mode(), ctx.forward_batch(batch):
        return model.forward()[0]


def main() -> None:
    set_tp_info(DistributedInfo(0, 1))
    ctx = Context(page_size=1)
    set_global_ctx(ctx)
    model = DecoderForCausalLM(CONFIG)
    names = model.state_dict()
    print(f"{len(names)} 个权重；第 0 层:")
    for name, weight in names.items():
        if ".layers.1." not in name:
            print(f"  {name:<52}{tuple(weight.shape)}")

    generator = torch.Generator().manual_seed(0)
    weights = {name: torch.randn(w.shape, generator=generator) * 0.2 for name, w in names.items()}
    try:
        model.load_state_dict({**weights, "model.layers.9.mlp.bias": torch.zeros(1)})
    except ValueError as error:
        print("多给一个权重:", error)
    model.load_state_dict(weights)

    ctx.attn_backend = OneRequestAttention()  # type: ignore[assignment]
    whole = step(model, ctx, "prefill", 0, 5)
    ctx.attn_backend = OneRequestAttention()  # type: ignore[assignment]
    step(model, ctx, "prefill", 0, 3)
    step(model, ctx, "decode", 3, 4)
    pieces = step(model, ctx, "decode", 4, 5)
    print(f"预填充 5 个，与预填充 3 个再解码 2 次：logits 最大误差 {(whole - pieces).abs().max().item():.1e}")
    print("下一个 token 相同:", int(whole.argmax()) == int(pieces.argmax()))


if __name__ == "__main__":
    main()
