"""Chapter 3: from a checkpoint to a model, as a stream.

Prints which tensors of the checkpoint were merged, the difference of the logits to transformers, and how many
tensors were waiting on the host at most while the weights were read.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from safetensors import safe_open  # noqa: E402

from minisgl.core import Batch, Context, Req, SamplingParams, set_global_ctx  # noqa: E402
from minisgl.distributed import DistributedInfo, set_tp_info  # noqa: E402
from minisgl.models.config import ModelConfig  # noqa: E402
from minisgl.models.register import create_model  # noqa: E402
from minisgl.models.weight import MERGED, load_weights  # noqa: E402
from minisgl.utils.hf import load_hf_config  # noqa: E402

TOKENS = [40, 71, 82, 303, 9]


def model_folder() -> Path:
    if given := os.environ.get("MINISGL_MODEL"):
        return Path(given)
    from tools.models import cached

    return cached("qwen3")


class WholePrompt:
    """Attention over the batch's own tokens: all that a single prefill needs."""

    def get_last_indices(self, bs: int) -> torch.Tensor:
        return torch.tensor([len(TOKENS) - 1])

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        heads = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
        return F.scaled_dot_product_attention(*heads, is_causal=True, enable_gqa=True)[0].transpose(0, 1)


def logits_of(folder: Path, config: ModelConfig) -> tuple[torch.Tensor, list[str]]:
    ctx = Context(page_size=1)
    set_global_ctx(ctx)
    ctx.attn_backend = WholePrompt()  # type: ignore[assignment]
    with torch.device("meta"):
        model = create_model(config)
    model.load_state_dict(load_weights(folder, config, torch.float32, torch.device("cpu")))
    ids = torch.tensor(TOKENS, dtype=torch.int32)
    batch = Batch([Req(ids, 0, 0, 1, 0, SamplingParams(), None)], "prefill")
    batch.input_ids, batch.positions = ids, torch.arange(len(TOKENS), dtype=torch.int32)
    batch.attn_metadata = WholePrompt()  # type: ignore[assignment]
    with torch.inference_mode(), ctx.forward_batch(batch):
        return model.forward()[0], list(model.state_dict())


def most_held(folder: Path) -> tuple[int, int]:
    """Parts that wait for others to be merged with, at most at one time; and tensors of the checkpoint."""
    waiting: dict[str, int] = {}
    most = count = 0
    parts = {part: merged for merged, pieces in MERGED.items() for part in pieces}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a dict)
                count += 1
                *owner, layer, kind = name.split(".")
                if (merged := parts.get(layer)) is None:
                    most = max(most, sum(waiting.values()) + 1)
                    continue
                key = ".".join([*owner, merged, kind])
                waiting[key] = waiting.get(key, 0) + 1
                most = max(most, sum(waiting.values()))
                if waiting[key] == len(MERGED[merged]):
                    del waiting[key]
    return most, count


def main() -> None:
    set_tp_info(DistributedInfo(0, 1))
    folder = model_folder()
    config = ModelConfig.from_hf(load_hf_config(folder))
    logits, names = logits_of(folder, config)
    for merged, pieces in MERGED.items():
        name = next(name for name in names if merged in name)
        print(f"合并: {' + '.join(pieces)} → {name}")
    most, count = most_held(folder)
    print(f"检查点里 {count} 个张量，模型里 {len(names)} 个；读的时候主机上最多同时留着 {most} 个")

    from transformers import AutoModelForCausalLM

    reference = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    with torch.inference_mode():
        wanted = reference(torch.tensor([TOKENS])).logits[0, -1]
    print(f"与 transformers 的 logits 最大误差: {(logits - wanted).abs().max().item():.1e}")
    print("下一个 token 相同:", int(logits.argmax()) == int(wanted.argmax()))


if __name__ == "__main__":
    main()
