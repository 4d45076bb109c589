import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from safetensors import safe_open

from tools.models import (
    CHECK_PROMPTS,
    MIN_GAP,
    RECIPES,
    ModelError,
    cached,
    greedy,
    load_reference,
    main,
    make,
    model_folder,
)


def test_chapter_17s_model_is_as_deep_and_as_wide_in_words_as_qwen3_and_thin() -> None:
    config = json.loads((cached("thin") / "config.json").read_text())
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert (config["num_hidden_layers"], config["vocab_size"]) == (28, 151_936)
    assert config["head_dim"] in (64, 128)
    assert config["num_attention_heads"] // config["num_key_value_heads"] in (1, 2, 3, 4, 6, 8, 16)
    assert (cached("thin") / "model.safetensors").stat().st_size < 32 * 2**20


@pytest.mark.parametrize("name", ["qwen3", "llama", "qwen3_moe"])
def test_a_saved_model_speaks_and_comes_to_no_near_tie(name: str) -> None:
    model = load_reference(cached(name))
    for prompt in CHECK_PROMPTS:
        tokens, gap = greedy(model, prompt, 8)
        assert gap > MIN_GAP
        assert len(set(tokens)) > 1


def test_its_tokenizer_gives_every_text_back() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(cached("qwen3")))
    text = "def f(x): return 12 + x  # 页表 🙂\n\té"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
    )
    assert chat == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.eos_token_id == RECIPES["qwen3"].config["eos_token_id"]


def test_the_cache_is_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cached("llama", tmp_path)
    stamp = (first / "model.safetensors").stat().st_mtime_ns
    assert cached("llama", tmp_path) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == stamp
    monkeypatch.setitem(RECIPES, "llama", replace(RECIPES["llama"], seed=1))
    other = cached("llama", tmp_path)
    assert other != first
    assert sorted(folder.name for folder in tmp_path.iterdir()) == sorted([first.name, other.name])
    with safe_open(first / "model.safetensors", "pt") as a, safe_open(other / "model.safetensors", "pt") as b:
        assert not a.get_tensor("lm_head.weight").equal(b.get_tensor("lm_head.weight"))


def test_a_recipe_that_comes_to_a_near_tie_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.models.MIN_GAP", 100.0)
    monkeypatch.setattr("tools.models.ATTEMPTS", 2)
    with pytest.raises(
        ModelError, match=r"none of 2 draws passes the check; the last: on prompt .* come within"
    ):
        make(RECIPES["qwen3"], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_minisgl_model_names_any_other_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_MODEL", str(tmp_path))
    assert model_folder("thin") == tmp_path
    monkeypatch.delenv("MINISGL_MODEL")
    assert model_folder("qwen3") == cached("qwen3")


def test_the_command_writes_a_folder_of_its_own(tmp_path: Path) -> None:
    runner = CliRunner()
    result = runner.invoke(main, ["tiny", "qwen3", str(tmp_path / "new" / "model")])
    assert result.exit_code == 0, result.output
    names = {file.name for file in (tmp_path / "new" / "model").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= names
    result = runner.invoke(main, ["tiny", "qwen3", str(tmp_path / "new" / "model")])
    assert isinstance(result.exception, ModelError)
    with pytest.raises(ModelError, match="no recipe 'gpt'"):
        cached("gpt")
