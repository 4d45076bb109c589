"""The fakes' signatures against those of the real packages: names, order, kinds and defaults."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

import pytest

SIGNATURES: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "golden" / "signatures.json").read_text()
)


def written(function: object) -> list[str]:
    """The parameters as the recorded ones are written."""
    shown: list[str] = []
    starred = False
    for parameter in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        if parameter.kind is parameter.VAR_POSITIONAL:
            shown.append(f"*{parameter.name}")
            starred = True
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            shown.append(f"**{parameter.name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        shown.append(parameter.name + default)
    return shown


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    real = [parameter.replace("=1e-6", "=1e-06") for parameter in SIGNATURES[name]]
    assert written(found) == real


def test_what_the_package_exports_is_what_its_modules_define() -> None:
    import flashinfer

    for name in flashinfer.__all__:
        assert getattr(flashinfer, name) is not None
    assert issubclass(
        flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper, flashinfer.BatchDecodeWithPagedKVCacheWrapper
    )
