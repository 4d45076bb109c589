"""FlashAttention 3: no plan, the page table of a paged KV cache goes straight in; or K and V without pages.

Interface of sglang-kernel 0.4.6 (`sgl_kernel/flash_attn.py`), computed on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from fake_kernels.checks_flash import FlashCall, check_arrays, check_call, check_flash_values, check_sinks
from fake_kernels.checks_values import check_tensors
from fake_kernels.checks_varlen import VarlenCall
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, act, require_context, settle
from fake_kernels.mistakes_flash import MAX_SEQLENS_MISSING, ROWS_LEFT, reached
from fake_kernels.paged import token_slots
from fake_kernels.reference import Request, attend
from fake_kernels.variants import Sink, Variant

_UNWRITTEN = 7.0


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    qv: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    page_table: torch.Tensor | None = None,
    cu_seqlens_q: torch.Tensor | None = None,
    cu_seqlens_k_new: torch.Tensor | None = None,
    max_seqlen_q: int | None = None,
    rotary_seqlens: torch.Tensor | None = None,
    q_descale: torch.Tensor | None = None,
    k_descale: torch.Tensor | None = None,
    v_descale: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int | None = None,
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    scheduler_metadata: torch.Tensor | None = None,
    num_splits: int = 0,
    pack_gqa: bool | None = None,
    only_qv: bool = False,
    sm_margin: int = 0,
    return_softmax_lse: bool = False,
    sinks: torch.Tensor | None = None,
    score_mod: Callable[..., Any] | None = None,
    aux_tensors: Any = None,
    ver: int = 3,
    out: torch.Tensor | None = None,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention of q over a KV cache that already holds the new tokens.

    q: [total, heads, head_dim] with cu_seqlens_q (int32 [B+1]) and max_seqlen_q, else [B, rows, heads,
    head_dim]. k_cache, v_cache: [pages, page_size, kv_heads, head_dim] with page_table (int32 [B, width],
    page numbers; entries beyond a request's length are padding), else [B, longest, kv_heads, head_dim].
    cache_seqlens: KV length of each request, new tokens included; int32 [B] or one int for all.
    window_size: (left, right) positions that a row sees, inclusive, -1 for all. causal is bottom-right.
    sinks: bfloat16 [heads] (float32 too with a float32 q), a logit of each head that takes its share of the
    softmax; the LSE includes it.

    Returns out, of q's shape and type; with return_softmax_lse also the LSE, natural logarithm, float32
    [heads, total] (or [B, heads, rows]). Rows that see nothing are 0 with LSE -inf. num_splits, pack_gqa,
    sm_margin and rotary_interleaved (without rotary) change no number; cu_seqlens_k_new without k is only
    compared with cache_seqlens in strict mode.
    """
    require_context()
    _only_default(
        k=(k, None),
        v=(v, None),
        qv=(qv, None),
        rotary_cos=(rotary_cos, None),
        rotary_sin=(rotary_sin, None),
        cache_batch_idx=(cache_batch_idx, None),
        cache_leftpad=(cache_leftpad, None),
        rotary_seqlens=(rotary_seqlens, None),
        q_descale=(q_descale, None),
        k_descale=(k_descale, None),
        v_descale=(v_descale, None),
        attention_chunk=(attention_chunk or None, None),
        scheduler_metadata=(scheduler_metadata, None),
        only_qv=(only_qv, False),
        score_mod=(score_mod, None),
        aux_tensors=(aux_tensors, None),
        ver=(ver, 3),
    )
    numbers = {"max_seqlen_q": max_seqlen_q, "softmax_scale": softmax_scale, "softcap": softcap}
    numbers |= {"causal": causal, "num_splits": num_splits, "return_softmax_lse": return_softmax_lse}
    settle(
        check_flash_values(numbers, window_size, q=q, k_cache=k_cache, v_cache=v_cache), "sgl", during="run"
    )
    if cache_seqlens is None:
        raise not_modelled("cache_seqlens", cache_seqlens)
    if isinstance(cache_seqlens, int):
        arrays: dict[str, object] = {"page_table": page_table}
    else:
        arrays = {"page_table": page_table, "cache_seqlens": cache_seqlens}
    arrays |= {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k_new": cu_seqlens_k_new}
    settle(check_arrays(**arrays), "sgl", during="run")
    batch = q.shape[0] if cu_seqlens_q is None else max(0, len(cu_seqlens_q) - 1)
    if isinstance(cache_seqlens, int):
        cache_seqlens = torch.full((batch,), cache_seqlens, dtype=torch.int32)
    call = FlashCall(
        q, k_cache, v_cache, page_table, cache_seqlens, cu_seqlens_q, cu_seqlens_k_new, max_seqlen_q
    )
    fault = settle(check_call(call), "sgl", during="run")
    settle(check_sinks(q, sinks), "sgl", during="run")
    act(fault)
    rows = q if cu_seqlens_q is not None else q.flatten(0, 1)
    variant = _variant(q, softmax_scale, causal, window_size, softcap, sinks)
    result, lse = attend(rows, k_cache, v_cache, _requests(call), variant, with_lse=return_softmax_lse)
    if fault is not None and fault.kind == "nan":
        result = torch.full_like(result, math.nan)
    if fault == ROWS_LEFT and max_seqlen_q is not None and cu_seqlens_q is not None:
        _leave_unwritten(result, lse, cu_seqlens_q.tolist(), max_seqlen_q, k_cache.shape[2])
    result = _written(result.view(q.shape), out)
    if lse is None:
        return result
    if cu_seqlens_q is None:
        return result, lse.view(batch, -1, lse.shape[1]).transpose(1, 2).contiguous()
    return result, lse.t().contiguous()


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    seqused_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    page_table: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: torch.Tensor | None = None,
    q_descale: torch.Tensor | None = None,
    k_descale: torch.Tensor | None = None,
    v_descale: torch.Tensor | None = None,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    only_qv: bool = False,
    sm_margin: int = 0,
    return_softmax_lse: bool = False,
    sinks: torch.Tensor | None = None,
    score_mod: Callable[..., Any] | None = None,
    aux_tensors: Any = None,
    ver: int = 3,
    out: torch.Tensor | None = None,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention of requests whose K and V lie one after the other, without pages.

    q: [total q, heads, head_dim]; k: [total k, kv_heads, head_dim]; v: [total k, kv_heads, head_dim of V].
    cu_seqlens_q, cu_seqlens_k: running sums of tokens from 0, int32 [B+1]. max_seqlen_q, max_seqlen_k: the
    largest lengths, required. window_size, causal, sinks as in `flash_attn_with_kvcache`. The library takes a
    page_table and drops it; here it is refused.

    Returns out [total q, heads, head_dim of V] of q's type; with return_softmax_lse also the LSE, natural
    logarithm, float32 [heads, total q]. Rows that see nothing are 0 with LSE -inf. num_splits, pack_gqa and
    sm_margin change no number.
    """
    require_context()
    _only_default(
        seqused_q=(seqused_q, None),
        seqused_k=(seqused_k, None),
        page_table=(page_table, None),
        qv=(qv, None),
        q_descale=(q_descale, None),
        k_descale=(k_descale, None),
        v_descale=(v_descale, None),
        attention_chunk=(attention_chunk or 0, 0),
        only_qv=(only_qv, False),
        score_mod=(score_mod, None),
        aux_tensors=(aux_tensors, None),
        ver=(ver, 3),
    )
    numbers = {"max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k}
    numbers |= {"softmax_scale": softmax_scale, "softcap": softcap, "causal": causal}
    numbers |= {"num_splits": num_splits, "return_softmax_lse": return_softmax_lse}
    settle(check_flash_values(numbers, window_size, q=q, k=k, v=v), "sgl", during="run")
    if max_seqlen_q is None or max_seqlen_k is None:
        missing = "max_seqlen_q" if max_seqlen_q is None else "max_seqlen_k"
        settle([Finding(MAX_SEQLENS_MISSING, missing)], "sgl", during="run")
    assert max_seqlen_q is not None
    assert max_seqlen_k is not None
    sums = {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
    settle(check_arrays(required=True, **sums), "sgl", during="run")
    call = VarlenCall(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    fault = settle(call.findings(), "sgl", during="run")
    settle(check_sinks(q, sinks), "sgl", during="run")
    act(fault)
    variant = _variant(q, softmax_scale, causal, window_size, softcap, sinks)
    k, v = call.caches()
    pools = (k.unsqueeze(1), v.unsqueeze(1))
    result, lse = attend(q, *pools, call.requests(), variant, with_lse=return_softmax_lse)
    if fault == ROWS_LEFT:
        _leave_unwritten(result, lse, cu_seqlens_q.tolist(), max_seqlen_q, k.shape[1])
    result = _written(result, out)
    return result if lse is None else (result, lse.t().contiguous())


def _only_default(**given: Any) -> None:
    """Refuse options that the fake doesn't compute. Each keyword is `name=(value, default)`."""
    for name, (value, default) in given.items():
        if value is not default and (isinstance(value, torch.Tensor) or value != default):
            raise not_modelled(name, value)


def _variant(
    q: torch.Tensor,
    softmax_scale: float | None,
    causal: bool,
    window_size: tuple[int, int],
    softcap: float,
    sinks: torch.Tensor | None,
) -> Variant:
    return Variant(
        scale=q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale,
        causal=causal,
        window_left=window_size[0],
        window_right=window_size[1],
        soft_cap=softcap,
        more=() if sinks is None else (Sink(sinks),),
    )


def _written(result: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
    """The result, in the caller's tensor if there is one."""
    if out is None:
        return result
    settle(check_tensors("stride", out=out), "sgl", during="run")
    if out.shape != result.shape or out.dtype != result.dtype:
        raise not_modelled("out", out)
    return out.copy_(result)


def _requests(call: FlashCall) -> list[Request]:
    """Rows and KV slots of every request, as the kernel reads them: a length beyond the width of the table
    reads on into the next row."""
    starts = (
        call.cu_seqlens_q.tolist()
        if call.cu_seqlens_q is not None
        else range(0, (call.batch + 1) * call.q.shape[1], call.q.shape[1])
    )
    size, pages = call.page_size, call.k_cache.shape[0]
    if call.page_table is None:
        entries, width = torch.arange(call.batch, dtype=torch.int32), 1
    else:
        entries, width = call.page_table.contiguous().flatten(), call.page_table.shape[1]
    found = []
    for i, length in enumerate(call.cache_seqlens.tolist()):
        slots = token_slots(i * width, length, entries, size, pages)
        found.append(Request(starts[i], starts[i + 1], slots))
    return found


def _leave_unwritten(
    result: torch.Tensor, lse: torch.Tensor | None, starts: list[int], max_seqlen_q: int, kv_heads: int
) -> None:
    """Rows that the launch grid doesn't reach keep what the memory held; here always the same number."""
    there = reached(max_seqlen_q, max(1, result.shape[1] // kv_heads))
    for start, stop in pairwise(starts):
        result[start + there : stop] = _UNWRITTEN
        if lse is not None:
            lse[start + there : stop] = _UNWRITTEN


__all__ = ["flash_attn_varlen_func", "flash_attn_with_kvcache"]
