"""For all tests: what makes them quick on a machine with few cores."""

import gc
import os
from collections.abc import Iterator

import pytest

# Each process of `make test` has about one core. Threads that share a tensor of ten numbers mostly wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True, scope="module")
def _short_garbage_collections() -> Iterator[None]:
    """Torch, transformers and thousands of collected tests are a million objects, and going through them takes half a
    second: what was there before a file's tests began is left out. What they make themselves is still collected."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
