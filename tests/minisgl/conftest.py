import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from minisgl.core import reset_global_ctx
from minisgl.distributed import DistributedInfo, destroy_process_group, reset_tp_info, set_tp_info
from tools.models import cached


@pytest.fixture(autouse=True)
def _fresh_process_state() -> Iterator[None]:
    """The context and the rank belong to the process; a test leaves neither behind, also when it fails."""
    yield
    destroy_process_group()
    reset_global_ctx()
    reset_tp_info()


@pytest.fixture
def single_rank() -> None:
    set_tp_info(DistributedInfo(0, 1))


@pytest.fixture(scope="session")
def tiny_qwen3() -> Path:
    return cached("qwen3")


@pytest.fixture(scope="session")
def tiny_llama() -> Path:
    return cached("llama")


os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one layer for tests that take thousands of steps; see scheduling.py."""
    from tests.minisgl.scheduling import write_small_model

    return write_small_model(tmp_path_factory.mktemp("small"))
