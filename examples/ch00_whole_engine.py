"""Chapter 0: a whole engine in one page, and nothing of ours imported.

Reads a Hugging Face folder, runs the transformer and picks the most probable token, again and again. It says what
transformers says, and it is naive in ways that the other chapters take away: it computes every token anew at every
step, serves one request at a time, and holds each checkpoint tensor under its own name.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

PROMPT = [40, 71, 82, 303, 9]
NEW_TOKENS = 12


def model_folder() -> Path:
    if given := os.environ.get("MINISGL_MODEL"):
        return Path(given)
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tools.models import cached

    return cached("qwen3")


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def rotate(x: torch.Tensor, theta: float) -> torch.Tensor:
    """x [tokens, heads, D], its first token at position 0."""
    half = x.shape[-1] // 2
    angles = torch.outer(torch.arange(len(x)).float(), theta ** (-torch.arange(half) / half)).unsqueeze(1)
    first, second = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Engine:
    """A Qwen3-shaped decoder: `logits(tokens)` of the next token."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        files = sorted(folder.glob("*.safetensors"))
        self.weights = {name: value.float() for file in files for name, value in load_file(file).items()}
        parameters = self.config.get("rope_parameters") or {}
        self.theta = parameters.get("rope_theta") or self.config["rope_theta"]

    def logits(self, tokens: list[int]) -> torch.Tensor:
        config, w = self.config, self.weights
        eps, dim = config["rms_norm_eps"], config["head_dim"]
        x = w["model.embed_tokens.weight"][torch.tensor(tokens)]
        for layer in range(config["num_hidden_layers"]):
            p = f"model.layers.{layer}."
            h = rms_norm(x, w[p + "input_layernorm.weight"], eps)
            q, k, v = (
                F.linear(h, w[f"{p}self_attn.{n}_proj.weight"]).unflatten(-1, (-1, dim)) for n in "qkv"
            )
            q = rotate(rms_norm(q, w[p + "self_attn.q_norm.weight"], eps), self.theta)
            k = rotate(rms_norm(k, w[p + "self_attn.k_norm.weight"], eps), self.theta)
            heads = (t.transpose(0, 1).unsqueeze(0) for t in (q, k, v))
            attended = F.scaled_dot_product_attention(*heads, is_causal=True, enable_gqa=True)
            attended = attended.squeeze(0).transpose(0, 1).flatten(1)
            x = x + F.linear(attended, w[p + "self_attn.o_proj.weight"])
            h = rms_norm(x, w[p + "post_attention_layernorm.weight"], eps)
            gate, up = (F.linear(h, w[f"{p}mlp.{n}_proj.weight"]) for n in ("gate", "up"))
            x = x + F.linear(F.silu(gate) * up, w[p + "mlp.down_proj.weight"])
        x = rms_norm(x[-1], w["model.norm.weight"], eps)
        return F.linear(x, w.get("lm_head.weight", w["model.embed_tokens.weight"]))

    def generate(self, prompt: list[int], new_tokens: int) -> list[int]:
        tokens = list(prompt)
        for _ in range(new_tokens):
            tokens.append(int(self.logits(tokens).argmax()))
        return tokens[len(prompt) :]


def transformers_says(folder: Path, prompt: list[int], new_tokens: int) -> list[int]:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    ids = torch.tensor([prompt])
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new_tokens,
        min_new_tokens=new_tokens,
        do_sample=False,
    )
    return out[0, len(prompt) :].tolist()


@torch.inference_mode()
def main() -> None:
    folder = model_folder()
    engine = Engine(folder)
    start = time.perf_counter()
    said = engine.generate(PROMPT, NEW_TOKENS)
    seconds = time.perf_counter() - start
    print("这一页引擎:", said)
    wanted = transformers_says(folder, PROMPT, NEW_TOKENS)
    print("transformers:", wanted)
    print("逐个 token 相同:", said == wanted)
    computed = sum(len(PROMPT) + step for step in range(NEW_TOKENS))
    needed = len(PROMPT) + NEW_TOKENS - 1
    print("它还很笨:")
    print(f"  算了 {computed} 个 token 的前向，有 KV 缓存只要 {needed} 个（用时 {seconds:.2f} s）")
    print("  一次只服务一个请求；别人要等它说完")
    print(f"  {len(engine.weights)} 个权重各自一个矩阵乘法：q、k、v 与 gate、up 没有合并")


if __name__ == "__main__":
    main()
