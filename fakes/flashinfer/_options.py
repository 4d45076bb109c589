"""Options that every attention call takes: what they may be, and which of them the fake computes."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Literal

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels.checks_values import check_numbers
from fake_kernels.errors import Text, not_modelled
from fake_kernels.findings import Finding, settle
from fake_kernels.outcomes import Path, raises, verbatim
from fake_kernels.variants import Alibi, AttentionVariant, LlamaRope, alibi_slopes

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
"""float32 is ours: the real kernels have no such instance, but engines are judged in it on a CPU."""

DEFAULT_ROPE_SCALE = 1.0
DEFAULT_ROPE_THETA = 1e4


def only_default(**given: Any) -> None:
    """Refuse options that the fake doesn't compute. Each keyword is `name=(value, default)`."""
    for name, (value, default) in given.items():
        if value is default or (not isinstance(value, torch.Tensor) and value == default):
            continue
        raise not_modelled(name, value)


def require_numbers(
    arguments: Mapping[str, Any],
    path: Path,
    *,
    during: Literal["plan", "run"],
    required: Container[str] = (),
) -> None:
    """Refuse arguments of a call, given by name, that should be numbers or flags and are not; see `check_numbers`."""
    settle(check_numbers(arguments, required), path, during=during)


def canonical_dtype(name: str, dtype: Any, path: Path) -> torch.dtype:
    """A torch dtype from itself or its name ("float16"), which the argument `name` gives."""
    if isinstance(dtype, torch.dtype):
        return dtype
    raised: type[Exception] = TypeError
    message = f"dtype must be a string or torch.dtype, got {type(dtype)}"
    if isinstance(dtype, str):
        found = getattr(torch, dtype, None)
        if isinstance(found, torch.dtype):
            return found
        raised, message = AttributeError, f"module 'torch' has no attribute {dtype!r}"
    allowed = {
        "en": "a torch.dtype, or its name: float16, bfloat16, float32",
        "zh": "torch.dtype，或者它的名字：float16、bfloat16、float32",
    }
    refuse_option(name, dtype, allowed, raised, message, path)
    raise AssertionError("an option that is refused always raises")


def planned_dtypes(
    q_data_type: Any, kv_data_type: Any, o_data_type: Any, path: Path
) -> tuple[torch.dtype, torch.dtype]:
    """The types of q and of KV: KV's and the output's are q's unless given, and the output's must be."""
    q_dtype = canonical_dtype("q_data_type", q_data_type, path)
    kv_dtype = q_dtype if kv_data_type is None else canonical_dtype("kv_data_type", kv_data_type, path)
    o_dtype = q_dtype if o_data_type is None else canonical_dtype("o_data_type", o_data_type, path)
    if o_dtype != q_dtype:
        raise not_modelled("o_data_type", str(o_dtype))
    if q_dtype not in DTYPES:
        raise not_modelled("q_data_type", str(q_dtype))
    return q_dtype, kv_dtype


def refuse_option(
    name: str, value: object, allowed: str | Text, raised: type[Exception], message: str, path: Path
) -> None:
    """An option's value that the real library refuses with `raised` and `message`. allowed: words in both languages, or
    names that need no translation."""
    outcome = raises(raised, verbatim(message))
    told = {"en": allowed, "zh": allowed} if isinstance(allowed, str) else allowed
    params = {"value": str(value), "allowed": told["en"], "allowed_zh": told["zh"]}
    settle([Finding(m.BAD_OPTION, name, params, outcome)], path, during="plan")


def caps(soft_cap: float | None) -> bool:
    """Whether this asks for a kernel with a soft cap: a number above 0 does, 0 and negative ones are none."""
    return soft_cap is not None and soft_cap > 0


def check_positions(
    pos_encoding_mode: str,
    rope_scale: float | None,
    rope_theta: float | None,
    soft_cap: float | None,
    path: Path,
) -> None:
    """Whether positions are encoded in a way that exists and that the fake computes."""
    if pos_encoding_mode not in ("NONE", "ROPE_LLAMA", "ALIBI"):
        message = f"Invalid pos_encoding_mode {pos_encoding_mode}"
        refuse_option(
            "pos_encoding_mode", pos_encoding_mode, "NONE, ROPE_LLAMA, ALIBI", KeyError, message, path
        )
    if pos_encoding_mode != "ROPE_LLAMA":
        # The real kernels ignore them without ROPE_LLAMA; who passes them expects a rotation.
        only_default(rope_scale=(rope_scale, None), rope_theta=(rope_theta, None))
    if path == "fa3":
        only_default(pos_encoding_mode=(pos_encoding_mode, "NONE"))
    if pos_encoding_mode == "ALIBI" and caps(soft_cap):
        raise not_modelled(
            "logits_soft_cap",
            soft_cap,
            why={
                "en": "With ALIBI the real kernel applies sm_scale twice under the cap (variants.cuh), which "
                "nobody measured.",
                "zh": "与 ALIBI 同时使用时，真实 kernel 会在 cap 之内乘两次 sm_scale（variants.cuh），没有测量过。",
            },
        )


def position_parts(
    pos_encoding_mode: str, rope_scale: float | None, rope_theta: float | None, heads: int
) -> tuple[AttentionVariant, ...]:
    """The variant that encodes positions, if any."""
    if pos_encoding_mode == "ALIBI":
        return (Alibi(alibi_slopes(heads)),)
    if pos_encoding_mode == "ROPE_LLAMA":
        scale = DEFAULT_ROPE_SCALE if rope_scale is None else rope_scale
        return (LlamaRope(scale, DEFAULT_ROPE_THETA if rope_theta is None else rope_theta),)
    return ()


def pick_backend(
    q_dtype: torch.dtype, head_dim_qk: int, head_dim_vo: int, *, mask: bool, positions: str
) -> str:
    """What "auto" becomes on an H200 (flashinfer/utils.py, determine_attention_backend)."""
    half = q_dtype in (torch.float16, torch.bfloat16)
    if not half or mask or positions != "NONE":
        return "fa2"
    same = head_dim_qk == head_dim_vo and head_dim_qk in (64, 128, 256)
    return "fa3" if same or (head_dim_qk, head_dim_vo) == (192, 128) else "fa2"


def path_of(backend: str) -> Path:
    """The kernel path of a prefill backend."""
    return "fa3" if backend == "fa3" else "fa2"
