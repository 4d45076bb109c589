"""Drawing the next token: softmax with temperature, top-k, top-p and min-p filters, and the filters by themselves.

probs and logits are [rows, vocabulary]. A filter's parameter is a number or a tensor [rows]. indices (int32 or
int64 [outputs]) names the row of each output; outputs have its type, int32 without. The draws depend only on
seed and offset, or on `generator` (torch's default CPU generator if None), which hands out a seed for each call.
They have the distribution of the GPU's and are not the same tokens (`fake_kernels.philox`). deterministic and
is_deterministic choose between kernels that agree up to rounding and change nothing here, nor does enable_pdl.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from fake_kernels import mistakes_sampling as m
from fake_kernels.checks_rows import acted
from fake_kernels.checks_sampling import (
    check_generator,
    check_indices,
    check_logits,
    check_matrix,
    check_parameter,
    check_probs,
    check_seeds,
    check_temperature,
)
from fake_kernels.findings import Finding, require_context, settle
from fake_kernels.memory import picked
from fake_kernels.outcomes import Outcome
from fake_kernels.philox import uniforms
from fake_kernels.sampling import (
    FAST_TOP_K,
    FAST_VOCABULARY,
    draw,
    draw_by_rejection,
    exactly_top_k,
    min_p_keeps,
    renormalised,
    top_k_keeps,
    top_p_keeps,
)

Seed = int | torch.Tensor | None


def softmax(
    logits: torch.Tensor,
    temperature: torch.Tensor | float | None = None,
    enable_pdl: bool | None = None,
) -> torch.Tensor:
    """softmax(logits / temperature), float32 [rows, vocabulary].

    temperature: a number above 0, or float tensor [rows]; ValueError and TypeError as the library's. 0 isn't
    greedy: the kernel multiplies by 0 (sampling.cuh, OnlineSoftmaxFusedKernel), strict mode refuses it.
    """
    require_context()
    acted(check_matrix("logits", logits))
    acted(check_temperature(temperature, logits.shape[0]))
    acted(check_logits(logits))
    if temperature is None:
        return torch.softmax(logits.double(), dim=-1).float()
    by = _column(temperature, logits.shape[0], torch.float64).unsqueeze(1)
    told = torch.where(by == 0, 0.0 * logits.double(), logits.double() / by)
    return torch.softmax(told, dim=-1).float()


def sampling_from_logits(
    logits: torch.Tensor,
    indices: torch.Tensor | None = None,
    deterministic: bool = True,
    generator: torch.Generator | None = None,
    check_nan: bool = False,
    seed: Seed = None,
    offset: Seed = None,
) -> torch.Tensor:
    """A token of softmax(logits) for each output. ValueError for NaN if check_nan."""
    require_context()
    acted(check_matrix("logits", logits))
    acted(check_logits(logits, check_nan=check_nan))
    weights = torch.softmax(logits.double(), dim=-1)
    return _drawn(weights, indices, generator, seed, offset)[0]


def sampling_from_probs(
    probs: torch.Tensor,
    indices: torch.Tensor | None = None,
    deterministic: bool = True,
    generator: torch.Generator | None = None,
    check_nan: bool = False,
    seed: Seed = None,
    offset: Seed = None,
    return_valid: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """A token for each output; with return_valid also bool [outputs], False where a row is all 0 (token 0)."""
    fault = _check_probs(probs, check_nan, return_valid)
    as_it_is = None if fault is None else Undistributed(probs)
    return _answer(_drawn(probs.double(), indices, generator, seed, offset, as_it_is), return_valid)


def top_p_sampling_from_probs(
    probs: torch.Tensor,
    top_p: torch.Tensor | float,
    indices: torch.Tensor | None = None,
    deterministic: bool = True,
    generator: torch.Generator | None = None,
    check_nan: bool = False,
    seed: Seed = None,
    offset: Seed = None,
    return_valid: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """A token out of those whose more probable ones add up to less than top_p."""
    fault = _check_probs(probs, check_nan, return_valid)
    p = _parameter("top_p", top_p, probs)
    as_it_is = None if fault is None else Undistributed(probs, p=p)
    weights = renormalised(probs, top_p_keeps(probs.double(), p))
    return _answer(_drawn(weights, indices, generator, seed, offset, as_it_is), return_valid)


def top_k_sampling_from_probs(
    probs: torch.Tensor,
    top_k: torch.Tensor | int,
    indices: torch.Tensor | None = None,
    deterministic: bool = True,
    generator: torch.Generator | None = None,
    check_nan: bool = False,
    seed: Seed = None,
    offset: Seed = None,
    return_valid: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """A token out of the top_k most probable; tokens that tie with the last of them count in."""
    fault = _check_probs(probs, check_nan, return_valid)
    k = _parameter("top_k", top_k, probs)
    as_it_is = None if fault is None else Undistributed(probs, k=k)
    weights = renormalised(probs, top_k_keeps(probs.float(), k))
    return _answer(_drawn(weights, indices, generator, seed, offset, as_it_is), return_valid)


def min_p_sampling_from_probs(
    probs: torch.Tensor,
    min_p: torch.Tensor | float,
    indices: torch.Tensor | None = None,
    deterministic: bool = True,
    generator: torch.Generator | None = None,
    check_nan: bool = False,
    seed: Seed = None,
    offset: Seed = None,
    return_valid: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """A token out of those with at least min_p times the largest probability. Rows need not sum to 1."""
    if _check_probs(probs, check_nan, return_valid, any_sum=True) is not None:
        probs = probs.float().nan_to_num(0.0).clamp(min=0.0)  # NaN and what is negative is never drawn
    kept = min_p_keeps(probs, _parameter("min_p", min_p, probs))
    return _answer(_drawn(renormalised(probs, kept), indices, generator, seed, offset), return_valid)


def top_k_top_p_sampling_from_logits(
    logits: torch.Tensor,
    top_k: torch.Tensor | int,
    top_p: torch.Tensor | float,
    indices: torch.Tensor | None = None,
    filter_apply_order: str = "top_k_first",
    deterministic: bool = True,
    generator: torch.Generator | None = None,
    check_nan: bool = False,
    seed: Seed = None,
    offset: Seed = None,
) -> torch.Tensor:
    """As `top_k_top_p_sampling_from_probs`, of softmax(logits); check_nan looks at these ("Input probs ...")."""
    require_context()
    acted(check_matrix("logits", logits))
    acted(check_logits(logits, check_nan=check_nan, told="probs"))
    probs = torch.softmax(logits.double(), dim=-1)
    weights = _top_k_top_p(logits, probs, top_k, top_p, indices, filter_apply_order)
    return _drawn(weights, indices, generator, seed, offset)[0]


def top_k_top_p_sampling_from_probs(
    probs: torch.Tensor,
    top_k: torch.Tensor | int,
    top_p: torch.Tensor | float,
    indices: torch.Tensor | None = None,
    filter_apply_order: str = "top_k_first",
    deterministic: bool = True,
    generator: torch.Generator | None = None,
    check_nan: bool = False,
    seed: Seed = None,
    offset: Seed = None,
    return_valid: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """A token that passes both filters.

    "top_k_first": top-p looks at the top-k tokens scaled to sum 1. "joint": both look at probs as they are.
    ValueError for another order. At a vocabulary of 65536 or more and an int top_k of at most 256 without
    indices, top_k_first takes exactly top_k tokens and breaks ties (the library: in any way; here: lower ids win).
    """
    fault = _check_probs(probs, check_nan, return_valid)
    if fault is not None:
        probs = probs.float().nan_to_num(0.0).clamp(min=0.0)
    weights = _top_k_top_p(probs, probs.double(), top_k, top_p, indices, filter_apply_order)
    as_it_is = None
    # The other order scales what top-k keeps to sum 1.
    if fault is not None and filter_apply_order == "joint":
        filters = {"k": _parameter("top_k", top_k, probs), "p": _parameter("top_p", top_p, probs)}
        as_it_is = Undistributed(probs, **filters)
    return _answer(_drawn(weights, indices, generator, seed, offset, as_it_is), return_valid)


def top_p_renorm_probs(
    probs: torch.Tensor, top_p: torch.Tensor | float, is_deterministic: bool = False
) -> torch.Tensor:
    """What top-p keeps, scaled to sum 1; the rest 0. float32 [rows, vocabulary]."""
    _check_probs(probs, check_nan=False, empty_allowed=True, drawn=False)
    # The largest stays whatever top_p is.
    p = _parameter("top_p", top_p, probs).clamp(min=torch.finfo(torch.float32).tiny)
    return renormalised(probs, top_p_keeps(probs.double(), p)).float()


top_p_renorm_prob = top_p_renorm_probs


def top_k_renorm_probs(
    probs: torch.Tensor, top_k: torch.Tensor | int, is_deterministic: bool = False
) -> torch.Tensor:
    """The top_k probabilities and what ties with the last, scaled to sum 1; the rest 0. Of probs' type: float32,
    float16 or bfloat16 (AssertionError otherwise)."""
    require_context()
    acted(check_matrix("probs", probs, asserted=True))
    acted(check_probs(probs, check_nan=False, empty_allowed=True, any_sum=True, drawn=False))
    return renormalised(probs, top_k_keeps(probs, _parameter("top_k", top_k, probs))).to(probs.dtype)


top_k_renorm_prob = top_k_renorm_probs


def top_k_mask_logits(logits: torch.Tensor, top_k: torch.Tensor | int) -> torch.Tensor:
    """The top_k logits and what ties with the last, the rest -inf. Of logits' type, as in `top_k_renorm_probs`."""
    require_context()
    acted(check_matrix("logits", logits, asserted=True))
    acted(check_logits(logits, empty_allowed=True))
    return logits.masked_fill(~top_k_keeps(logits, _parameter("top_k", top_k, logits)), -torch.inf)


@dataclass(frozen=True)
class Undistributed:
    """Rows [B, V] that are no distributions, and the filters that they go through: k, p [B] or None."""

    probs: torch.Tensor
    k: torch.Tensor | None = None
    p: torch.Tensor | None = None

    def draw(
        self, indices: torch.Tensor | None, numbers: Iterator[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """A token for each output, as the kernels draw from such rows."""
        told = [None if given is None else _rows_of(given, indices) for given in (self.probs, self.k, self.p)]
        assert told[0] is not None
        return draw_by_rejection(told[0], numbers, told[1], told[2])


def _rows_of(rows: torch.Tensor, indices: torch.Tensor | None) -> torch.Tensor:
    """rows[indices]; behind the last row lie zeros."""
    return rows if indices is None else picked(rows, indices.long())


def _check_probs(
    probs: torch.Tensor, check_nan: bool, empty_allowed: bool, *, any_sum: bool = False, drawn: bool = True
) -> Outcome | None:
    """What is wrong with the rows in a way that the kernels don't notice, None if nothing is."""
    require_context()
    kind = acted(check_matrix("probs", probs))
    told = {"check_nan": check_nan, "empty_allowed": empty_allowed, "any_sum": any_sum, "drawn": drawn}
    return acted(check_probs(probs, **told)) or kind


def _parameter(name: str, given: torch.Tensor | float, rows: torch.Tensor) -> torch.Tensor:
    """One entry a row, in the type that the library brings it to: int32 for top_k, float32 for the others. A negative
    top_k is a huge one: it is read as an unsigned number."""
    acted(check_parameter(name, given, rows.shape[0]))
    if name == "top_k":
        limit = rows.shape[1]
        given = given.clamp(max=limit) if isinstance(given, torch.Tensor) else min(given, limit)
        column = _column(given, rows.shape[0], torch.int32)
        return column.masked_fill(column < 0, limit)
    return _column(given, rows.shape[0], torch.float32)


def _column(given: torch.Tensor | float, rows: int, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(given, torch.Tensor):
        return given.to(dtype)
    return torch.full((rows,), given, dtype=dtype)


def _top_k_top_p(
    given: torch.Tensor,
    probs: torch.Tensor,
    top_k: torch.Tensor | int,
    top_p: torch.Tensor | float,
    indices: torch.Tensor | None,
    order: str,
) -> torch.Tensor:
    """Weights float64 [rows, vocabulary] of the tokens that pass. given: what top-k compares (logits or probs)."""
    if order not in ("top_k_first", "joint"):
        settle([Finding(m.ORDER_UNKNOWN, "filter_apply_order", {"value": order})], "rows", during="run")
    k, p = _parameter("top_k", top_k, given), _parameter("top_p", top_p, given)
    if order == "joint":
        return renormalised(probs, top_k_keeps(probs.float(), k) & top_p_keeps(probs, p))
    fast = indices is None and isinstance(top_k, int) and 0 < top_k <= FAST_TOP_K
    if fast and given.shape[1] >= FAST_VOCABULARY and top_k < given.shape[1]:
        among = renormalised(probs, exactly_top_k(given, int(top_k)))
    else:
        among = renormalised(probs, top_k_keeps(given, k))
    return renormalised(among, top_p_keeps(among, p))


def _drawn(
    weights: torch.Tensor,
    indices: torch.Tensor | None,
    generator: torch.Generator | None,
    seed: Seed,
    offset: Seed,
    as_it_is: Undistributed | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A token for each output of the type of indices (int32 without), and whether its row had any. as_it_is: takes the
    place of the weights."""
    acted(check_indices(indices, *weights.shape))
    outputs = weights.shape[0] if indices is None else len(indices)
    acted(check_seeds(seed, offset, outputs))
    acted(check_generator(generator))
    if seed is None or offset is None:
        seed, offset = int(torch.randint(2**62, (), generator=generator)), 0
    numbers = uniforms(_entries(seed, outputs), _entries(offset, outputs))
    if as_it_is is not None:
        tokens, valid = as_it_is.draw(indices, numbers)
    else:
        tokens, valid = draw(_rows_of(weights, indices), next(numbers))
    return tokens.to(torch.int32 if indices is None else indices.dtype), valid


def _entries(given: int | torch.Tensor, outputs: int) -> torch.Tensor:
    if isinstance(given, torch.Tensor):
        return given.view(torch.int64).expand(outputs)
    low = given % 2**64
    return torch.full((outputs,), low - 2**64 if low >= 2**63 else low, dtype=torch.int64)


def _answer(
    drawn: tuple[torch.Tensor, torch.Tensor], return_valid: bool
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    return drawn if return_valid else drawn[0]


__all__ = [
    "min_p_sampling_from_probs",
    "sampling_from_logits",
    "sampling_from_probs",
    "softmax",
    "top_k_mask_logits",
    "top_k_renorm_probs",
    "top_k_sampling_from_probs",
    "top_k_top_p_sampling_from_logits",
    "top_k_top_p_sampling_from_probs",
    "top_p_renorm_probs",
    "top_p_sampling_from_probs",
]
