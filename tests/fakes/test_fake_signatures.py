"""The fakes' signatures against the recorded ones of the real packages: names, order, kinds and defaults.

`python tools/real_wheels.py --record` records them; test_fake_wheel_signatures.py reads the packages themselves.
"""

from __future__ import annotations

import importlib
import json

import pytest

from tools.real_wheels import RECORDED
from tools.wheel_signatures import of_object, written

SIGNATURES: dict[str, list[str]] = json.loads(RECORDED.read_text("utf-8"))


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    assert written(of_object(found)) == SIGNATURES[name]


def test_what_the_package_exports_is_what_its_modules_define() -> None:
    import flashinfer

    for name in flashinfer.__all__:
        assert getattr(flashinfer, name) is not None
    assert issubclass(
        flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper, flashinfer.BatchDecodeWithPagedKVCacheWrapper
    )
