"""Reading a model in Hugging Face's layout: a folder with config.json, safetensors and a tokenizer.

config.json is read as plain JSON, so that neither the engine nor its tests need transformers for it; the
tokenizer does need it, and imports it when asked for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def resolve_model(model_path: str) -> Path:
    """The folder of a model: `model_path` itself, or the local copy of that repository of the hub.

    A repository that is not in the local cache is downloaded, if huggingface_hub is there to do it.
    FileNotFoundError, saying what was tried, if there is no such folder and none can be had.
    """
    folder = Path(model_path).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or model_path.startswith((".", "~")) or model_path.count("/") != 1:
        raise FileNotFoundError(f"there is no model folder {model_path}")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise FileNotFoundError(
            f"there is no folder {model_path}, and without huggingface_hub it cannot be looked up on the hub"
        ) from error
    try:
        return Path(
            snapshot_download(model_path, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.jinja"])
        )
    except OSError as error:  # offline, unknown repository, no permission: all of them end up here
        raise FileNotFoundError(
            f"there is no folder {model_path}, and the hub's repository of that name cannot be had: {error}"
        ) from error


def load_hf_config(folder: Path) -> dict[str, Any]:
    """config.json of a model folder; FileNotFoundError or ValueError that names the file."""
    file = folder / "config.json"
    if not file.is_file():
        raise FileNotFoundError(f"{folder} has no config.json: is it a model in Hugging Face's layout?")
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{file} is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ValueError(f"{file} should hold an object, not {type(raw).__name__}")
    return raw


def load_eos_token_ids(folder: Path) -> frozenset[int]:
    """Tokens that end an answer, by config.json and by generation_config.json, where chat models list more.

    Either file may give one number, a list, or nothing; ValueError that names a file that is not JSON.
    """
    eos: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        file = folder / name
        if not file.is_file():
            continue
        try:
            given = json.loads(file.read_text(encoding="utf-8")).get("eos_token_id")
        except json.JSONDecodeError as error:
            raise ValueError(f"{file} is not JSON: {error}") from error
        eos.update(given if isinstance(given, list) else [] if given is None else [given])
    return frozenset(eos)


def load_tokenizer(folder: Path) -> Any:
    """The model's tokenizer, as transformers reads it."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder))
