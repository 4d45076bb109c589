"""What can be wrong with q and the cache of a run, given its plan."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels.checks_paged import DECODE_GROUPS
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding
from fake_kernels.outcomes import GARBAGE, HARMLESS, UNMEASURED, Outcome
from fake_kernels.reference import Layout

from flashinfer._cache import kv_heads_of
from flashinfer._misread import rows_left_out
from flashinfer._plan import Plan


def check_dtypes(
    plan: Plan, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor
) -> Iterator[Finding]:
    """Whether q, K and V have the types that the plan was made for, and these are one type."""
    if q.dtype != plan.q_dtype:
        by_default = plan.q_dtype == torch.float16
        yield Finding(
            m.Q_DTYPE,
            "q",
            {
                "value": str(q.dtype),
                "planned": str(plan.q_dtype),
                "default": " (the default, unless you passed it)" if by_default else "",
                "default_zh": "（没有传时的默认值）" if by_default else "",
            },
        )
    for cache, mistake, argument in (
        (k_cache, m.K_DTYPE, plan.cache_names[0]),
        (v_cache, m.V_DTYPE, plan.cache_names[1]),
    ):
        if cache.dtype != plan.kv_dtype:
            outcome = None
            if mistake is m.V_DTYPE:
                outcome = m.V_READ_AS_K if cache.itemsize == plan.kv_dtype.itemsize else UNMEASURED
            told = {"value": str(cache.dtype), "planned": str(plan.kv_dtype)}
            yield Finding(mistake, argument, told, outcome)
    if plan.kv_dtype != plan.q_dtype:
        raise not_modelled("kv_data_type", str(plan.kv_dtype))


def check_dimensions(plan: Plan, q: torch.Tensor) -> Iterator[Finding]:
    """Whether q has rows, heads and head_dim at all; what follows relies on it."""
    if q.ndim != 3:
        yield _q_shape(plan, q, UNMEASURED)


def _q_shape(plan: Plan, q: torch.Tensor, outcome: Outcome) -> Finding:
    sizes = {"shape": list(q.shape), "heads": plan.num_qo_heads, "head_dim": plan.head_dim}
    return Finding(
        m.Q_SHAPE, "q", {**sizes, "got": q.shape[-1] if q.ndim else 0, "dim": plan.head_dim_vo}, outcome
    )


def _of_heads(plan: Plan, q: torch.Tensor, kv_heads: int) -> Outcome:
    """What q of other heads or another head_dim than planned leads to, over a cache as planned."""
    heads, dim = q.shape[1], q.shape[2]
    if "indices" not in plan.arrays or kv_heads != plan.num_kv_heads:
        return UNMEASURED
    if heads == plan.num_qo_heads and dim > plan.head_dim:
        return m.WIDER_HEADS.get(plan.path, UNMEASURED)
    if heads > plan.num_qo_heads and heads % kv_heads == 0 and dim == plan.head_dim:
        return _of_groups(plan, heads // kv_heads, m.MORE_HEADS.get(plan.path, UNMEASURED))
    return UNMEASURED


def _of_kv_heads(plan: Plan, q: torch.Tensor, kv_heads: int) -> Outcome:
    """What a cache of other heads than planned leads to, under q as planned."""
    heads = q.shape[1]
    if heads != plan.num_qo_heads or kv_heads < 1:
        return UNMEASURED
    if kv_heads > heads:
        return m.TOKENS_AS_HEADS.get(plan.path, UNMEASURED)
    if heads % kv_heads:
        return UNMEASURED
    if "indices" not in plan.arrays:
        return HARMLESS if kv_heads > plan.num_kv_heads else UNMEASURED
    if kv_heads < plan.num_kv_heads:
        return _of_groups(plan, heads // kv_heads, m.FEWER_KV_HEADS.get(plan.path, UNMEASURED))
    return UNMEASURED


def _of_groups(plan: Plan, group: int, measured: Outcome) -> Outcome:
    """The measured outcome, but for kernels that have no such group or whose tiles are the measured ones no longer."""
    if plan.path == "dec" and group not in DECODE_GROUPS:
        return m.TOKENS_AS_HEADS["dec"]
    if plan.path in ("tc", "fa2"):
        return GARBAGE if rows_left_out(plan, group) else HARMLESS
    return measured


def check_shapes(
    plan: Plan, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, layout: Layout
) -> Iterator[Finding]:
    """Whether q is [rows, num_qo_heads, head_dim] and the cache has the planned heads, in `layout`."""
    if q.shape[1] != plan.num_qo_heads or q.shape[2] != plan.head_dim:
        yield _q_shape(plan, q, _of_heads(plan, q, kv_heads_of(k_cache, layout)))
    of_k, of_v = plan.cache_names
    if k_cache.shape[:-1] != v_cache.shape[:-1]:
        yield Finding(
            m.CACHE_SHAPE,
            of_v,
            {
                "dimension": "shape of V",
                "dimension_zh": " V 形状",
                "got": list(v_cache.shape),
                "planned": [*k_cache.shape[:-1], plan.head_dim_vo],
            },
            UNMEASURED,
        )
    sizes = (
        (of_k, "KV heads", " KV 头数", kv_heads_of(k_cache, layout), plan.num_kv_heads),
        (of_k, "head_dim", " head_dim ", k_cache.shape[3], plan.head_dim),
        (of_v, "head_dim of V", " V 的 head_dim ", v_cache.shape[3], plan.head_dim_vo),
    )
    for argument, dimension, dimension_zh, got, planned in sizes:
        if got != planned:
            told = {"dimension": dimension, "dimension_zh": dimension_zh, "got": got, "planned": planned}
            told["group"] = q.shape[1] // max(1, got)
            outcome = _of_kv_heads(plan, q, got) if dimension == "KV heads" else UNMEASURED
            yield Finding(m.CACHE_SHAPE, argument, told, outcome)


def check_strides(
    plan: Plan, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor
) -> Iterator[Finding]:
    """Whether the last dimensions are contiguous, and K and V laid out alike where a kernel needs that."""
    for argument, name, tensor in (
        ("q", "q", q),
        (plan.cache_names[0], "K", k_cache),
        (plan.cache_names[1], "V", v_cache),
    ):
        if tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
            measured = "indices" in plan.arrays and not _reads_are_aligned(tensor)
            outcome = m.APART.get((name, plan.path), UNMEASURED) if measured else UNMEASURED
            yield Finding(m.LAST_DIM_STRIDE, argument, {"tensor": name, "stride": tensor.stride(-1)}, outcome)
    if plan.path not in ("dec", "fa3") or plan.head_dim != plan.head_dim_vo:
        return
    # Strides of dimensions with one entry say nothing and differ between equal views.
    sizes = k_cache.shape
    differing = [i for i in range(k_cache.ndim) if sizes[i] > 1 and k_cache.stride(i) != v_cache.stride(i)]
    if differing:
        yield Finding(
            m.KV_STRIDES,
            plan.cache_names[0],
            {"k": list(k_cache.stride()), "v": list(v_cache.stride()), "dim": differing[0]},
        )


def _reads_are_aligned(tensor: torch.Tensor) -> bool:
    """Whether every vector of the last dimension begins at a multiple of 16 bytes."""
    steps = [stride for size, stride in zip(tensor.shape[:-1], tensor.stride()[:-1], strict=True) if size > 1]
    return all(step * tensor.itemsize % 16 == 0 for step in steps) and tensor.data_ptr() % 16 == 0
