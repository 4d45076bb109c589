"""Wrong calls and what comes of each: one table for the real kernels, which may die of them, and for faithful fakes,
which say so. A call gets the kernel's path and returns its result beside the right one.

The calls are in wrong_paged.py and wrong_others.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch

FOUR = ("dec", "tc", "fa2", "fa3")
Result = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class WrongCall:
    """`outcome`: right, wrong, nan, lost (the context; or lost: ERROR), dies, hangs, or raises TYPE: words of the message."""

    call: Callable[[str], Result]
    path: str
    outcome: str


CALLS: dict[str, WrongCall] = {}


def outcomes(*four: str, **by_path: str) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Put a call into the table, with what came of it on an H200: one word for all of `FOUR`, four, or by path."""
    told = dict(zip(FOUR, four * 4 if len(four) == 1 else four, strict=False)) | by_path

    def add(call: Callable[[str], Result]) -> Callable[[str], Result]:
        for path, outcome in told.items():
            CALLS[f"{call.__name__} {path}"] = WrongCall(call, path, outcome)
        return call

    return add


def what_came(out: torch.Tensor, right: torch.Tensor) -> str:
    """right, wrong or nan; garbage that overflows is wrong."""
    out, right = out.detach().cpu().double(), right.detach().cpu().double()
    if bool(out.isnan().any()):
        return "nan"
    return "right" if out.shape == right.shape and torch.allclose(out, right, atol=2e-2) else "wrong"


def came(call: WrongCall) -> str:
    """Make a call in this process. With the real kernels it may not return."""
    try:
        out, right = call.call(call.path)
        return what_came(out, right)
    except Exception as error:  # noqa: BLE001  the kind of error is the result
        message = " ".join(str(error).split())
        cuda = re.search(r"CUDA error: (.*?)(?: \(caused by| Search for| / |$)", message)
        return f"lost: {cuda[1]}" if cuda else f"raises {type(error).__name__}: {message}"
