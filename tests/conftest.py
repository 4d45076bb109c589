"""For all tests: what makes them quick on a machine with few cores."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from judge.judge import Judge

# Each process of `make test` has about one core. Threads that share a tensor of ten numbers mostly wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a real browser are long and want a core for themselves: they are spread over the first half, one after so
    many others, instead of all beginning at once."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    pages = [path for path in files if path.parent.name == "browser"]
    order = [path for path in files if path.parent.name != "browser"]
    apart = len(order) // (2 * len(pages)) if pages else 0
    for i, path in enumerate(pages):
        order.insert(i * (apart + 1), path)
    items[:] = [item for path in order for item in files[path]]


@pytest.fixture(autouse=True, scope="module")
def _short_garbage_collections() -> Iterator[None]:
    """Torch, transformers and thousands of collected tests are a million objects, and going through them takes half a
    second: what was there before a file's tests began is left out. What they make themselves is still collected."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def judge() -> "Iterator[Judge]":
    """One judge for all, since starting one loads torch three times. Where a test ends processes of it, it starts others."""
    from judge.judge import Judge

    with Judge(children=2) as made:
        yield made


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty database of the newest schema: copying it takes a hundredth of what all migrations do."""
    from judge.store import Store

    path = tmp_path_factory.mktemp("migrated") / "course.db"
    store = Store(f"sqlite:///{path}")
    store.migrate()
    store.close()
    assert [p.name for p in path.parent.iterdir()] == [path.name], (
        "a journal is left: the file alone is not all"
    )
    return path
