"""What chapters' tests share. They run in the checkout, and on each chapter's own tree, where this file and
the tests
are all that is beside the tree: so they import the engine, the fakes and nothing else of the repository at
the top."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from minisgl.core import reset_global_ctx
from minisgl.distributed import reset_tp_info


@pytest.fixture(autouse=True)
def _fresh_process_state() -> Iterator[None]:
    """The context and the rank belong to the process; a test leaves neither behind, also when it fails."""
    yield
    reset_global_ctx()
    reset_tp_info()


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """MINISGL_MODEL, as `steps.py check` sets it, or the thin model, made if need be."""
    if given := os.environ.get("MINISGL_MODEL"):
        return Path(given)
    from tools.models import cached

    return cached("thin")
