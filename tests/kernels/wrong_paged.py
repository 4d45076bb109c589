"""Wrong calls of the paged wrappers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flashinfer
import torch
from dense import Paged, Rule, arena, paged, sums
from place import DEVICE, i32, rng, there
from wrong_calls import Result, outcomes

HALF = torch.float16
MISALIGNED = "lost: misaligned address"


# The wrappers, right but for what a call changes.


def a_batch(path: str, **changes: Any) -> Paged:
    decode = path in ("dec", "tc")
    lengths = (
        {"q_lens": (1, 1, 1), "kv_lens": (40, 17, 5)}
        if decode
        else {"q_lens": (3, 5, 2), "kv_lens": (20, 40, 9)}
    )
    return paged(**{**lengths, "seed": 1, **changes})


def wrapper_of(path: str, **options: Any) -> Any:
    if path in ("dec", "tc"):
        return flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            arena(), use_tensor_cores=path == "tc", **options
        )
    return flashinfer.BatchPrefillWithPagedKVCacheWrapper(arena(), backend=path, **options)


def in_graph_buffers(path: str, room: int = 4096) -> tuple[Any, list[torch.Tensor]]:
    buffers = [torch.zeros(n, dtype=torch.int32, device=DEVICE) for n in (4, room, 3)]
    kind = flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper
    return kind(arena(), *buffers, use_tensor_cores=path == "tc"), buffers


def plan(wrapper: Any, path: str, batch: Paged, sizes: tuple[int, ...] | None = None, **changes: Any) -> None:
    arrays = {"indptr": batch.indptr, "indices": batch.indices, "last": batch.last}
    arrays |= {name: changes.pop(name) for name in tuple(changes) if name in arrays}
    qo = () if path in ("dec", "tc") else (batch.qo_indptr,)
    wrapper.plan(*qo, *arrays.values(), *(sizes or batch.sizes), q_data_type=HALF, **changes)


def run(path: str, batch: Paged | None = None, **changes: Any) -> Result:
    """Plan with changed arguments, run with right ones."""
    batch = batch or a_batch(path)
    wrapper = wrapper_of(path)
    plan(wrapper, path, batch, **changes)
    return wrapper.run(batch.q, batch.cache("tuple", "NHD")), batch.want(Rule())[0]


def run_with(path: str, q: torch.Tensor | None = None, cache: Any = None, **options: Any) -> Result:
    """Plan with right arguments, run with changed ones; right is what the planned batch gives."""
    batch = a_batch(path)
    wrapper = wrapper_of(path)
    plan(wrapper, path, batch)
    given = batch.cache("tuple", "NHD") if cache is None else cache
    return wrapper.run(batch.q if q is None else q, given, **options), batch.want(Rule())[0]


def strided(x: torch.Tensor) -> torch.Tensor:
    """The same vector in every second place; what lies between are ones."""
    return torch.stack([x, torch.ones_like(x)], 1).flatten()[::2]


def columns(x: torch.Tensor) -> torch.Tensor:
    """The same numbers, those of a head apart in memory."""
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


# Arrays of a batch.


@outcomes("wrong")
def strided_indices(path: str) -> Result:
    return run(path, indices=strided(a_batch(path).indices))


@outcomes("hangs", "wrong", "wrong", "right")
def strided_indptr(path: str) -> Result:
    return run(path, indptr=strided(a_batch(path).indptr))


@outcomes("wrong")
def indptr_counts_tokens(path: str) -> Result:
    return run(path, indptr=sums(a_batch(path).kv_lens))


@outcomes("raises RuntimeError: The size of tensor a (2) must match the size of tensor b (3)")
def indptr_lacks_an_entry(path: str) -> Result:
    return run(path, indptr=a_batch(path).indptr[:-1].clone())


@outcomes("raises RuntimeError: The size of tensor a (4) must match the size of tensor b (3)")
def indptr_is_a_matrix(path: str) -> Result:
    return run(path, indptr=a_batch(path).indptr[None])


@outcomes("wrong")
def last_page_len_is_negative(path: str) -> Result:
    last = a_batch(path).last.clone()
    last[0] = -1
    return run(path, last=last)


@outcomes("right", "right", "right", "wrong")
def last_page_len_of_an_empty_request(path: str) -> Result:
    batch = a_batch(path, kv_lens=(20, 0, 9))
    last = batch.last.clone()
    last[1] = 7
    return run(path, batch, last=last)


@outcomes("dies", "dies", "dies", "wrong")
def page_size_zero(path: str) -> Result:
    return run(path, sizes=(8, 2, 64, 0))


@outcomes("right", "right", "right", "wrong")
def seq_lens_of_another_batch(path: str) -> Result:
    return run(path, seq_lens=i32([1, *a_batch(path).kv_lens[1:]]))


@outcomes(fa2="wrong", fa3="wrong")
def qo_indptr_starts_at_one(path: str) -> Result:
    batch, wrapper = a_batch(path), wrapper_of(path)
    arrays = (batch.indptr, batch.indices, batch.last)
    wrapper.plan(i32([1, 3, 8, 10]), *arrays, *batch.sizes, q_data_type=HALF)
    return wrapper.run(batch.q, batch.cache("tuple", "NHD")), batch.want(Rule())[0]


# Sizes and types of what run gets.


@outcomes("right", "right", "wrong", "right")
def kv_heads_are_not_the_planned(path: str) -> Result:
    return run(path, sizes=(8, 4, 64, 16))


@outcomes("right", "right", "right", "wrong")
def page_size_is_not_the_planned(path: str) -> Result:
    return run(path, sizes=(8, 2, 64, 32))


@outcomes("raises RuntimeError: Unsupported group_size: 0", "wrong", "wrong", "dies")
def heads_before_tokens(path: str) -> Result:
    """A cache in HND for a wrapper of NHD: heads and tokens of a page change places."""
    return run_with(path, cache=a_batch(path).cache("tuple", "HND"))


@outcomes("wrong")
def v_of_another_type(path: str) -> Result:
    k, v = a_batch(path).cache("tuple", "NHD")  # type: ignore[misc]
    return run_with(path, cache=(k, v.bfloat16()))


@outcomes("raises RuntimeError: CUDA cores template only supports equal head dim", "wrong", "wrong", "wrong")
def head_dim_of_q(path: str) -> Result:
    q = a_batch(path).q
    out, right = run_with(path, q=torch.cat([q, q], 2))
    return out[..., :64], right


@outcomes(MISALIGNED, MISALIGNED, MISALIGNED, "lost: an illegal instruction was encountered")
def q_in_columns(path: str) -> Result:
    return run_with(path, q=columns(a_batch(path).q))


@outcomes(MISALIGNED)
def cache_in_columns(path: str) -> Result:
    k, v = a_batch(path).cache("tuple", "NHD")  # type: ignore[misc]
    return run_with(path, cache=(columns(k), columns(v)))


@outcomes("wrong", "wrong", "wrong", "right")
def out_with_gaps(path: str) -> Result:
    out = torch.full((len(a_batch(path).q), 8, 128), 7.0, dtype=HALF, device=DEVICE)[..., :64]
    return out, run_with(path, out=out)[1]


@outcomes("raises RuntimeError: Check failed: lse.size(0)")
def lse_is_too_short(path: str) -> Result:
    return run_with(path, lse=torch.zeros(1, 8, device=DEVICE))


# Masks and sinks.


def bits(batch: Paged) -> list[torch.Tensor]:
    generator = rng(3)
    return [
        torch.rand(n, kv, generator=generator) < 0.5
        for n, kv in zip(batch.q_lens, batch.kv_lens, strict=True)
    ]


@outcomes(fa2="wrong")
def mask_of_floats(path: str) -> Result:
    batch = a_batch(path)
    mask = torch.ones(sum(m.numel() for m in bits(batch)), device=DEVICE)
    return run(path, custom_mask=mask)


@outcomes(fa2="wrong")
def packed_masks_of_several_requests(path: str) -> Result:
    batch = a_batch(path)
    packed = torch.cat([flashinfer.packbits(there(m.flatten()), "little") for m in bits(batch)])
    return run(path, packed_custom_mask=packed)[0], batch.want(Rule(), bits(batch))[0]


@outcomes(fa2="lost")
def mask_of_an_empty_request(path: str) -> Result:
    """Of two runs one said "illegal memory access" and one "operation not supported on global/shared address space"."""
    batch = a_batch(path, kv_lens=(20, 0, 9))
    mask = there(torch.cat([m.flatten() for m in bits(batch)]))
    return run(path, batch, custom_mask=mask)[0], batch.want(Rule(), bits(batch))[0]


@outcomes(
    fa3="raises RuntimeError: BatchPrefillWithPagedKVCacheSM90Run failed with error: operation not supported"
)
def mask_on_fa3(path: str) -> Result:
    return run(path, custom_mask=there(torch.cat([m.flatten() for m in bits(a_batch(path))])))


def with_sinks(path: str, given: Callable[[torch.Tensor], tuple[Any, ...]]) -> Result:
    batch, sinks = a_batch(path), 2 * torch.randn(8, generator=rng(5))
    wrapper = flashinfer.BatchAttentionWithAttentionSinkWrapper(
        arena(), backend=path, q_data_type=HALF, kv_data_type=HALF, head_dim_qk=64, head_dim_vo=64
    )
    wrapper.plan(batch.qo_indptr, batch.indptr, batch.indices, batch.last, *batch.sizes)
    out = wrapper.run(batch.q, batch.cache("tuple", "NHD"), *given(there(sinks)))
    return out, batch.want(Rule(sinks=sinks))[0]


@outcomes(fa2="wrong")
def sinks_of_half_type(path: str) -> Result:
    return with_sinks(path, lambda sinks: (sinks.half(), 0.125))


@outcomes(fa2="dies")
def sinks_forgotten(path: str) -> Result:
    return with_sinks(path, lambda sinks: ())


# Plans that are not this batch's.


@outcomes("wrong")
def int_workspace_is_shared(path: str) -> Result:
    """Another wrapper plans into the same int workspace before this one runs."""
    batch, other = a_batch(path), a_batch(path, kv_lens=(3000, 40, 9000))
    first, second = wrapper_of(path), wrapper_of(path)
    second._int_workspace_buffer = first._int_workspace_buffer
    plan(first, path, batch)
    plan(second, path, other)
    return first.run(batch.q, batch.cache("tuple", "NHD")), batch.want(Rule())[0]


def replayed(path: str, planned: tuple[int, ...], held: tuple[int, ...]) -> Result:
    """Under graphs, buffers are filled for another batch and no plan follows."""
    first, batch = (paged((1, 1, 1), lengths, seed=1) for lengths in (planned, held))
    wrapper, buffers = in_graph_buffers(path)
    plan(wrapper, path, first)
    for buffer, array in zip(buffers, (batch.indptr, batch.indices, batch.last), strict=True):
        buffer[: len(array)].copy_(array)
    return wrapper.run(batch.q, batch.cache("tuple", "NHD")), batch.want(Rule())[0]


@outcomes(dec="right", tc="right")
def stale_plan_grows_within_its_chunk(path: str) -> Result:
    return replayed(path, (40, 17, 5), (64, 33, 20))


@outcomes(dec="wrong", tc="wrong")
def stale_plan_grows_out_of_its_chunk(path: str) -> Result:
    return replayed(path, (40, 17, 5), (12000, 17, 5))


@outcomes(dec="hangs", tc="right")
def stale_plan_of_a_split_request_that_shrinks(path: str) -> Result:
    return replayed(path, (12000, 170, 50), (3000, 170, 50))


def planned_fast(
    path: str, before: dict[str, Any], dim: int = 64, dim_before: int = 64, **options: Any
) -> Result:
    first, batch = (paged((1, 1, 1), (40, 17, 5), seed=1, head_dim=d) for d in (dim_before, dim))
    wrapper = wrapper_of(path)
    plan(wrapper, path, first, **before)
    arrays = (batch.indptr, batch.indices, batch.last)
    flashinfer.decode.fast_decode_plan(wrapper, *arrays, *batch.sizes, q_data_type=HALF, **options)
    return wrapper.run(batch.q, batch.cache("tuple", "NHD")), batch.want(Rule())[0]


@outcomes(dec="right", tc="right")
def fast_plan_drops_the_window(path: str) -> Result:
    return planned_fast(path, {"window_left": 5})


@outcomes(dec="wrong", tc="nan")
def fast_plan_drops_the_cap(path: str) -> Result:
    return planned_fast(path, {"logits_soft_cap": 2.0})


@outcomes(dec="wrong", tc="wrong")
def fast_plan_drops_the_positions(path: str) -> Result:
    return planned_fast(path, {"pos_encoding_mode": "ROPE_LLAMA"})


@outcomes(dec="right", tc="right")
def fast_plan_adds_positions_in_vain(path: str) -> Result:
    return planned_fast(path, {}, pos_encoding_mode="ROPE_LLAMA")


@outcomes(dec="wrong", tc="wrong")
def fast_plan_of_a_larger_head_dim(path: str) -> Result:
    return planned_fast(path, {}, dim=128)


@outcomes(dec="right", tc="right")
def fast_plan_told_of_fewer_pages(path: str) -> Result:
    told = torch.tensor([0, 1, 2, 6], dtype=torch.int32)
    return planned_fast(path, {}, global_override_indptr_cpu=told)


@outcomes(dec="hangs", tc="right")
def fast_plan_told_of_many_pages(path: str) -> Result:
    told = torch.tensor([0, 60, 200, 600], dtype=torch.int32)
    return planned_fast(path, {}, global_override_indptr_cpu=told)
