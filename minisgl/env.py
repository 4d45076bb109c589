"""Switches that are set by environment variable, for trying things out without changing a program.

Whatever a program decides belongs in its configuration; a variable here only overrides a default. A value
that cannot be read is an error, never quietly the default.
"""

from __future__ import annotations

import os

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

# Name -> what it does, for --help and for the reader.
VARIABLES = {
    "MINISGL_OVERLAP": "1 or 0: prepare the next batch while the device computes the current one (default 1)",
    "MINISGL_CHECK": "1 or 0: check after every step of the scheduler that each page has one owner (default 0)",
    "MINISGL_CUDA_EXT": "1 or 0: on a GPU, compile and use our own CUDA kernels (default 1)",
}


def env_flag(name: str, default: bool) -> bool:
    """The variable `name`, one of VARIABLES, as a switch; ValueError for a value that is neither."""
    if name not in VARIABLES:
        raise KeyError(f"{name} is not among the environment variables of the engine")
    text = os.environ.get(name, "").strip().lower()
    if not text:
        return default
    if text not in _TRUE + _FALSE:
        raise ValueError(f"{name}={text!r}: give one of {', '.join(_TRUE + _FALSE)}")
    return text in _TRUE
