"""One wrong call and what the real library did with it on an H200: both modes held against that."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from fake_kernels.outcomes import PATH_NAMES, UNMEASURED
from paged_batches import PATHS


def everywhere(outcome: Any) -> dict[str, Any]:
    """The same outcome on every path of the paged wrappers."""
    return dict.fromkeys(PATHS, outcome)


UNMEASURED_WORDS = {
    lang: tuple(of[lang] + colon + UNMEASURED.describe(lang, {}) for of in PATH_NAMES.values())
    for lang, colon in (("en", ": "), ("zh", "："))
}
"""How an account begins where nobody looked."""


@dataclass(frozen=True)
class Case:
    """code: what strict mode calls it. call: makes it and says what came of it.

    real: (type, message) for an error of the library's; CUDA's words for one that takes the context along; "dies" or
    "hangs"; otherwise the numbers that came back, as `call` tells them.
    """

    code: str
    call: Callable[[], Any]
    real: Any


OUTCOME_WORDS = {
    "garbage": "returns wrong numbers",
    "harmless": "the result happens to be right",
    "unmeasured": "was not measured",
}


def check_account(error: KernelError, outcome: Any) -> None:
    """The account of the real kernel says this outcome: (type, message) for an error of the library's, otherwise a key of
    `OUTCOME_WORDS` or the words themselves."""
    if isinstance(outcome, tuple):
        assert isinstance(error, outcome[0])
        assert outcome[1] in error.real["en"]
    else:
        assert OUTCOME_WORDS.get(outcome, outcome) in error.real["en"].split(";")[0]
    for lang in ("en", "zh"):
        assert "{" not in error.text(lang)


def check_strict(case: Case) -> KernelError:
    """It is refused, with an account of what was measured."""
    with pytest.raises(KernelError) as caught:
        case.call()
    error = caught.value
    assert error.code == case.code
    for lang in ("zh", "en"):
        assert "{" not in error.text(lang)
        assert not error.real[lang].startswith(UNMEASURED_WORDS[lang])
    if isinstance(case.real, tuple):
        assert isinstance(error, case.real[0])
        assert case.real[1] in str(error)
    elif isinstance(case.real, str) and case.real not in ("dies", "hangs"):
        assert f"CUDA error: {case.real}" in str(error)
    return error


def check_faithful(case: Case) -> None:
    """It is acted out."""
    with mode.use("faithful"):
        if isinstance(case.real, tuple):
            with pytest.raises(case.real[0], match=re.escape(case.real[1])) as caught:
                case.call()
            assert not isinstance(caught.value, KernelError)
        elif isinstance(case.real, str) and case.real in ("dies", "hangs"):
            with pytest.raises(KernelError, match="Not acted out") as told:
                case.call()
            assert told.value.params["mistake"] == case.code
        elif isinstance(case.real, str):
            for _ in range(2):
                with pytest.raises(KernelError, match=f"CUDA error: {case.real}"):
                    case.call()
        else:
            got = case.call()
            assert torch.allclose(
                torch.tensor(got, dtype=torch.float64),
                torch.tensor(case.real, dtype=torch.float64),
                rtol=1e-3,
                atol=1e-5,
                equal_nan=True,
            )
