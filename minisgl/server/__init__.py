"""The engine as a service: its processes, an HTTP server in front of them, and what starts them.

Processes are forked from one that has imported what all of them need and has done nothing else, so that they
start quickly and share no state. This file imports nothing heavy: the command asks for that process first, and
the imports of both then happen at the same time.
"""

from __future__ import annotations

import multiprocessing
from typing import Any

_PRELOADED = [
    "minisgl.scheduler.scheduler",
    "minisgl.tokenizer.server",
    "minisgl.server.launch",
    "transformers.models.auto.tokenization_auto",
]


def process_context() -> Any:
    """How processes of the engine are made; where processes cannot be forked, each imports for itself."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


def warm_up() -> None:
    """Begin to import what the processes need, without waiting for it."""
    if process_context().get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running

        ensure_running()
