"""What `python tools/problems.py verify` found last about the packages here, for the staff's page: a small file in the data
folder, by the packages' hashes. A package that has changed since is not verified, whatever was found before."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError

NAME = "verified.json"


class Found(BaseModel):
    """What one run found of a package. `seeds`: sittings that its programs got; `at`: seconds since 1970."""

    model_config = ConfigDict(frozen=True)

    version: str
    seeds: int
    complaints: list[str]
    at: float


class _File(RootModel[dict[int, Found]]):
    """Problem -> what was found last."""


def read(folder: Path) -> dict[int, Found]:
    """Problem -> what was found last. Empty where nothing was written yet. Raises ValueError, which names the file, for one
    that nobody wrote here."""
    path = folder / NAME
    try:
        return _File.model_validate_json(path.read_bytes()).root
    except FileNotFoundError:
        return {}
    except ValidationError as error:
        raise ValueError(
            f"{path} is damaged ({error.errors()[0]['msg']}): delete it and verify again"
        ) from None


def write(folder: Path, found: Iterable[tuple[int, Found]]) -> Path:
    """Keep what a run has found, beside what others found of other problems. Raises as `read` does, and OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = _File({**read(folder), **dict(found)}).model_dump_json(indent=1)
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=NAME, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, folder / NAME)  # whoever reads meanwhile has the old one or the new one
    return folder / NAME
