"""Every test of the fakes starts strict, in a context that is alive."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_kernels import mode


@pytest.fixture(autouse=True)
def fresh_context() -> Iterator[None]:
    mode.new_context()
    with mode.use("strict"):
        yield
    mode.new_context()
