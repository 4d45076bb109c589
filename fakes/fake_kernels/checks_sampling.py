"""What can be wrong with distributions, filters and seeds of the sampling functions: the findings, causes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Real

import torch

from fake_kernels import mistakes_sampling as m
from fake_kernels.checks_rows import tensor_of
from fake_kernels.checks_values import check_numbers
from fake_kernels.findings import Finding
from fake_kernels.memory import beyond
from fake_kernels.mistakes_rows import NO_ROWS, NOT_CONTIGUOUS
from fake_kernels.outcomes import GARBAGE, IGNORED, UNMEASURED, Outcome, raises

TYPES = (torch.float16, torch.bfloat16, torch.float32)
"""What the functions that check types take; the others bring any float type to float32."""

SUM_TOLERANCE = 1e-2
"""How far a row of probabilities may be from sum 1: half types, rounded entry by entry, come to 0.4 percent."""

_TEMPERATURE_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_matrix(name: str, rows: torch.Tensor, *, asserted: bool = False) -> Iterator[Finding]:
    """Whether these are float rows [B, V] that a kernel can read. asserted: the library checks the type."""
    yield from tensor_of(name, rows, 2, checked=True)
    if rows.dtype not in TYPES and (asserted or not rows.is_floating_point()):
        wrong = m.DTYPE_ASSERTED if asserted else m.UNSUPPORTED_DTYPE
        number = rows.dtype != torch.bool and not rows.is_complex()
        outcome = None if asserted else GARBAGE if name == "probs" and number else UNMEASURED
        yield Finding(wrong, name, {"dtype": str(rows.dtype)}, outcome)
    if rows.shape[1] == 0:
        yield Finding(m.NO_VOCABULARY, name, {"shape": list(rows.shape)})
    if rows.shape[0] == 0:
        yield Finding(NO_ROWS, name)
    # The library's own .float() packs slices of half types; float32 is read where it lies.
    if not (rows if asserted else rows.float()).is_contiguous():
        yield Finding(NOT_CONTIGUOUS, name, {"stride": list(rows.stride())})


def check_logits(
    logits: torch.Tensor, *, check_nan: bool = False, told: str = "logits", empty_allowed: bool = False
) -> Iterator[Finding]:
    """NaN (the library's message calls them `told`), and rows that are -inf everywhere."""
    yield from check_numbers({"check_nan": check_nan})
    yield from _check_nan("logits", logits, check_nan, told, UNMEASURED)
    if not empty_allowed:
        empty = _first("logits", m.EMPTY_ROW, (logits == -torch.inf).all(dim=-1))
        yield from (replace(found, outcome=UNMEASURED) for found in empty)


def check_probs(
    probs: torch.Tensor, *, check_nan: bool, empty_allowed: bool, any_sum: bool = False, drawn: bool = True
) -> Iterator[Finding]:
    """NaN, negative entries, rows without any probability, rows that don't sum to 1 (unless any_sum).

    drawn: tokens are drawn from them; what the other functions do with such rows was not measured.
    """
    outcome = GARBAGE if drawn else UNMEASURED
    yield from check_numbers({"check_nan": check_nan, "return_valid": empty_allowed})
    yield from _check_nan("probs", probs, check_nan, "probs", outcome)
    negative = (probs < 0).any(dim=-1)
    for found in _first("probs", m.NEGATIVE, negative, probs.amin(dim=-1)):
        yield replace(found, outcome=outcome)
    sums = probs.double().sum(dim=-1)
    if not empty_allowed:
        yield from _first("probs", m.EMPTY_ROW, sums == 0)
    if not any_sum:
        off = ((sums - 1).abs() > SUM_TOLERANCE) & (sums != 0)
        for found in _first("probs", m.NOT_NORMALISED, off, (sums * 1e4).round() / 1e4):
            yield replace(found, outcome=outcome)


def check_temperature(temperature: object, rows: int) -> Iterator[Finding]:
    """None, a positive number, or a float tensor [rows] of them (sampling.py, _validate_softmax_temperature)."""
    if temperature is None:
        return
    if not isinstance(temperature, torch.Tensor):
        if isinstance(temperature, bool) or not isinstance(temperature, Real):
            message = "temperature must be None, a real scalar, or a 1D floating-point tensor with one value per logits row"
            yield Finding(m.TEMPERATURE_KIND, "temperature", {"message": message})
        elif not float(temperature) > 0:
            value = float(temperature)
            place = {"position": 0, "value": value}
            yield Finding(m.TEMPERATURE_VALUE, "temperature", place, GARBAGE if value <= 0 else UNMEASURED)
        return
    message = ""
    if temperature.ndim != 1:
        got = tuple(temperature.shape)
        message = f"temperature tensor must be 1D with one value per logits row, got shape {got}"
    elif len(temperature) != rows:
        message = f"temperature tensor length must equal logits.size(0) ({rows}), got {len(temperature)}"
    elif temperature.dtype not in _TEMPERATURE_DTYPES:
        wanted = "float16, bfloat16, float32, or float64"
        message = f"temperature tensor must have dtype {wanted}, got {temperature.dtype}"
    if message:
        yield Finding(m.TEMPERATURE_TENSOR, "temperature", {"message": message})
    for found in _first("temperature", m.TEMPERATURE_VALUE, ~(temperature > 0), temperature):
        yield replace(found, outcome=UNMEASURED if bool(temperature.isnan().any()) else GARBAGE)


_RANGES = {
    "top_k": ("at least 1", "不小于 1"),
    "top_p": ("above 0 and at most 1", "大于 0 且不大于 1"),
    "min_p": ("between 0 and 1", "在 0 与 1 之间"),
}


def check_parameter(name: str, given: object, rows: int) -> Iterator[Finding]:
    """top_k, top_p or min_p: a number, or a tensor [rows] of its kind, each in range."""
    whole = name == "top_k"
    if isinstance(given, torch.Tensor):
        if given.ndim != 1 or len(given) != rows:
            yield Finding(
                m.PARAMETER_SHAPE,
                name,
                {"shape": list(given.shape), "rows": rows, "message": _told(given, rows)},
            )
        no_number = given.is_complex() or given.dtype == torch.bool
        if no_number or (whole and not bool((given == given.trunc()).all())):
            yield Finding(m.PARAMETER_KIND, name, {"kind": str(given.dtype)} | _wanted(whole))
        values = given
    else:
        right = isinstance(given, int) if whole else isinstance(given, Real)
        if isinstance(given, bool) or not right:
            kind = {"kind": type(given).__name__} | _wanted(whole)
            number = isinstance(given, Real) and not isinstance(given, bool)
            yield Finding(m.PARAMETER_KIND, name, kind, m.PARAMETER_BINDING if number else None)
        values = torch.tensor([given], dtype=torch.int64 if whole else torch.float64)
    outside = {
        "top_k": values < 1,
        "top_p": ~((values > 0) & (values <= 1)),
        "min_p": ~((values >= 0) & (values <= 1)),
    }[name]
    switched_off = {"top_k": values < 0, "top_p": values > 1, "min_p": values < 0}[name]
    outcome = IGNORED if bool((switched_off | ~outside).all()) else GARBAGE
    if bool(values.isnan().any()):
        outcome = UNMEASURED
    en, zh = _RANGES[name]
    for found in _first(name, m.PARAMETER_RANGE, outside, values):
        yield Finding(found.mistake, name, {**found.params, "range": en, "range_zh": zh}, outcome)


def check_indices(indices: torch.Tensor | None, rows: int, vocabulary: int) -> Iterator[Finding]:
    """Which row each output is drawn from: int32 or int64 [outputs], each in 0..rows-1. vocabulary: entries of a row."""
    if indices is None:
        return
    yield from tensor_of("indices", indices, 1)
    if len(indices) == 0:
        yield Finding(NO_ROWS, "indices")
    typed = indices.dtype in (torch.int32, torch.int64)
    if not typed or not indices.is_contiguous():
        params = {"dtype": str(indices.dtype), "shape": list(indices.shape)}
        yield Finding(m.INDICES_WRONG, "indices", params, UNMEASURED if typed else None)
    outside = ((indices < 0) | (indices >= rows)).nonzero().flatten().tolist()
    for at in outside[:1]:
        place = {"position": at, "value": int(indices[at]), "rows": rows}
        farthest = (int(indices.max()) - rows) * vocabulary * 4  # as float32
        outcome = beyond(farthest) if int(indices.min()) >= 0 else UNMEASURED
        yield Finding(m.INDEX_OUT_OF_RANGE, "indices", place, outcome)


def check_generator(generator: object) -> Iterator[Finding]:
    """Whether it is a generator, or None for torch's own."""
    if generator is not None and not isinstance(generator, torch.Generator):
        kind = type(generator).__name__
        told = raises(AttributeError, f"'{kind}' object has no attribute 'get_state'", "run")
        yield Finding(m.GENERATOR_KIND, "generator", {"kind": kind}, told)


def check_seeds(seed: object, offset: object, outputs: int) -> Iterator[Finding]:
    """Both integers, or both int64 tensors with 1 entry or one an output (sampling.py,
    _validate_and_convert_seed_offset)."""
    if (seed is None) != (offset is None):
        yield Finding(m.SEED_ALONE, "offset" if seed is None else "seed", {})
        return
    if seed is None:
        return
    if isinstance(seed, torch.Tensor) != isinstance(offset, torch.Tensor):
        yield Finding(
            m.SEED_WRONG, "seed", {"message": "seed and offset must both be tensors or both be scalars"}
        )
    for name, given in (("seed", seed), ("offset", offset)):
        if not isinstance(given, torch.Tensor):
            if not isinstance(given, int):
                yield Finding(m.SEED_KIND, name, {"kind": type(given).__name__})
            continue
        message = ""
        if given.dtype not in (torch.int64, torch.uint64):
            message = f"{name} tensor must be int64/uint64"
        elif given.ndim != 1:
            message = f"{name} tensor must be 1D"
        elif len(given) not in (1, outputs):
            message = f"{name} tensor length must be 1 or {outputs}"
        if message:
            yield Finding(m.SEED_WRONG, name, {"message": message})


def _check_nan(
    name: str, rows: torch.Tensor, checked: bool, told: str, outcome: Outcome
) -> Iterator[Finding]:
    for found in _first(name, m.NAN_CHECKED if checked else m.NAN, rows.isnan().any(dim=-1)):
        yield Finding(found.mistake, name, {**found.params, "told": told}, None if checked else outcome)


def _first(
    name: str, mistake: m.Mistake, wrong: torch.Tensor, values: torch.Tensor | None = None
) -> Iterator[Finding]:
    """The first row where `wrong` holds, with its value."""
    for row in wrong.nonzero().flatten().tolist()[:1]:
        place = {"position": row}
        yield Finding(mistake, name, place if values is None else place | {"value": values[row].item()})


def _wanted(whole: bool) -> dict[str, str]:
    if whole:
        return {"wanted": "an integer or a tensor of integers", "wanted_zh": "整数或整数张量"}
    return {"wanted": "a float or a tensor of floats", "wanted_zh": "浮点数或浮点张量"}


def _told(given: torch.Tensor, rows: int) -> str:
    """The library's message for a parameter tensor of another shape (sampling_utils.h, check_tensor_param)."""
    if given.ndim == 0:
        return (
            "Expected a 1D tensor of shape (batch_size,) or scalar for the sampling parameter, "
            "but got a 0-dimensional tensor."
        )
    if given.ndim > 1:
        return f"Expected a 1D tensor or scalar for the sampling parameter, but got a {given.ndim}D tensor."
    return (
        f"Sampling parameter tensor batch size mismatch: expected length {rows} to match the reference "
        f"tensor batch size, but got length {len(given)}."
    )
