"""Writing new tokens into a paged cache: held to a walk over the page lists, one token at a time."""

from __future__ import annotations

import flashinfer
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from place import DEVICE, HALF, REAL, i32, normal, rng, there

HEADS, HEAD_DIM = 2, 64
requests = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), min_size=1, max_size=5)
"""For each request: tokens that were there, tokens that are appended."""


def pages_of(lengths: list[int], page_size: int) -> list[int]:
    return [-(-length // page_size) for length in lengths]


def table(
    lengths: list[int], page_size: int, seed: int, spare: int = 3
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """indptr, indices, last_page_len of requests with these lengths on shuffled pages, and the pool's pages."""
    pages = pages_of(lengths, page_size)
    total = sum(pages)
    indptr = [sum(pages[:i]) for i in range(len(pages) + 1)]
    last = [(n - 1) % page_size + 1 if n else 0 for n in lengths]
    shuffled = torch.randperm(total + spare, generator=rng(seed))[:total]
    return i32(indptr), there(shuffled.int()), i32(last), total + spare


def indptr_of(counts: list[int]) -> torch.Tensor:
    return i32([sum(counts[:i]) for i in range(len(counts) + 1)])


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    requests,
    st.sampled_from([1, 3, 4, 16]),
    st.sampled_from(["NHD", "HND"]),
    st.booleans(),
    st.integers(0, 999),
)
def test_tokens_go_to_their_places_and_nothing_else_changes(
    batch: list[tuple[int, int]], page_size: int, layout: str, stacked: bool, seed: int
) -> None:
    lengths = [old + new for old, new in batch]
    counts = [new for _, new in batch]
    assume(sum(counts) > 0)
    indptr, indices, last, pool = table(lengths, page_size, seed)
    inner = (page_size, HEADS) if layout == "NHD" else (HEADS, page_size)
    kv = normal(rng(seed), pool, 2, *inner, HEAD_DIM, dtype=torch.float16)
    if stacked:
        cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor] = kv
        k, v = kv.unbind(1)
    else:
        k, v = kv[:, 0].contiguous(), kv[:, 1].contiguous()
        cache = (k, v)
    want_k, want_v = k.cpu().clone(), v.cpu().clone()
    key = normal(rng(seed + 1), sum(counts), HEADS, HEAD_DIM, dtype=torch.float16)
    value = normal(rng(seed + 2), sum(counts), HEADS, HEAD_DIM, dtype=torch.float16)

    appended = indptr_of(counts)
    seq_lens = flashinfer.get_seq_lens(indptr, last, page_size)
    assert seq_lens.tolist() == lengths
    where = flashinfer.get_batch_indices_positions(appended, seq_lens, sum(counts))
    flashinfer.append_paged_kv_cache(key, value, *where, cache, indices, indptr, last, layout)

    row = 0
    for request, (old, new) in enumerate(batch):
        for position in range(old, old + new):
            page = int(indices[int(indptr[request]) + position // page_size])
            entry = position % page_size
            at = (page, entry) if layout == "NHD" else (page, slice(None), entry)
            want_k[at], want_v[at] = key[row].cpu(), value[row].cpu()
            row += 1
    assert torch.equal(k.cpu(), want_k)
    assert torch.equal(v.cpu(), want_v)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(requests, st.integers(0, 5), st.booleans())
def test_rows_of_a_batch_and_rows_left_over(batch: list[tuple[int, int]], extra: int, own: bool) -> None:
    counts = [new for _, new in batch]
    seq_lens = i32([old + new for old, new in batch])
    nnz = sum(counts) + extra
    given_out = (i32([7] * nnz), i32([7] * nnz)) if own else (None, None)
    found, positions = flashinfer.get_batch_indices_positions(indptr_of(counts), seq_lens, nnz, *given_out)
    assert found.dtype == positions.dtype == torch.int32
    if own:
        assert found is given_out[0]
        assert positions is given_out[1]
    assert found.tolist() == [r for r, new in enumerate(counts) for _ in range(new)] + [-1] * extra
    assert (
        positions.tolist() == [old + j for old, new in batch for j in range(new)] + [7 if own else 0] * extra
    )


def test_the_example_of_the_documentation() -> None:
    found, positions = flashinfer.get_batch_indices_positions(i32([0, 1, 3, 6, 10]), i32([5, 5, 5, 5]), 10)
    assert found.tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert positions.tolist() == [4, 3, 4, 2, 3, 4, 1, 2, 3, 4]


@pytest.mark.parametrize("dtype", HALF)
def test_a_slice_of_a_projection_is_appended(dtype: torch.dtype) -> None:
    """Keys and values as they come out of one matrix product: rows with a stride, heads side by side."""
    indptr, indices, last, pool = table([5], 4, 0)
    qkv = normal(rng(0), 2, 3 * HEADS * HEAD_DIM, dtype=dtype).view(2, 3, HEADS, HEAD_DIM)
    kv = torch.zeros(pool, 2, 4, HEADS, HEAD_DIM, dtype=dtype, device=DEVICE)
    where = (i32([0, 0]), i32([3, 4]))
    flashinfer.append_paged_kv_cache(qkv[:, 1], qkv[:, 2], *where, kv, indices, indptr, last)
    assert torch.equal(kv[int(indices[0]), :, 3], qkv[0, 1:])
    assert torch.equal(kv[int(indices[1]), :, 0], qkv[1, 1:])


def test_index_arrays_may_be_of_another_integer_type() -> None:
    indptr, indices, last, pool = table([5], 4, 0)
    kv = torch.zeros(pool, 2, 4, HEADS, HEAD_DIM, dtype=torch.float16, device=DEVICE)
    row = torch.ones(1, HEADS, HEAD_DIM, dtype=torch.float16, device=DEVICE)
    arrays = [array.long() for array in (i32([0]), i32([4]))]
    flashinfer.append_paged_kv_cache(row, row, *arrays, kv, indices.long(), indptr.long(), last.long())
    assert torch.equal(kv[int(indices[1]), 0, 0], row[0])
    assert int(kv.count_nonzero()) == 2 * row.numel()


def test_what_the_library_refuses() -> None:
    indptr, indices, last, pool = table([5], 4, 0)
    row = torch.ones(1, HEADS, HEAD_DIM, dtype=torch.float16, device=DEVICE)
    k = torch.zeros(pool, 4, HEADS, HEAD_DIM, dtype=torch.float16, device=DEVICE)
    wider = torch.zeros(pool, 5, HEADS, HEAD_DIM, dtype=torch.float16, device=DEVICE)[:, :4]

    def append(cache: object, layout: str = "NHD") -> None:
        flashinfer.append_paged_kv_cache(row, row, i32([0]), i32([4]), cache, indices, indptr, last, layout)

    with pytest.raises(KeyError, match="Invalid kv_layout"):
        append((k, k.clone()), "NDH")
    with pytest.raises(KeyError, match="Unrecognized paged_kv_cache type"):
        append([k, k.clone()])
    with pytest.raises(ValueError, match="x must be 3D or 4D"):
        append((k[0, 0], k[0, 0]))
    with pytest.raises(RuntimeError, match="k/v strides must be identical"):
        append((k, wider))
    with pytest.raises(ValueError, match="Invalid shape of positions"):
        flashinfer.get_batch_indices_positions(i32([0, 1]), i32([5]), 1, None, i32([0, 0]))
    with pytest.raises(ValueError, match="Invalid dtype of batch_indices"):
        flashinfer.get_batch_indices_positions(i32([0, 1]), i32([5]), 1, i32([0]).long())


def test_no_kernel_can_be_launched_for_no_rows() -> None:
    indptr, indices, last, pool = table([5], 4, 0)
    none = torch.ones(0, HEADS, HEAD_DIM, dtype=torch.float16, device=DEVICE)
    k = torch.zeros(pool, 4, HEADS, HEAD_DIM, dtype=torch.float16, device=DEVICE)
    with pytest.raises(RuntimeError):
        flashinfer.append_paged_kv_cache(none, none, i32([]), i32([]), (k, k.clone()), indices, indptr, last)
    if REAL:  # the failed launch is told once more, by whatever asks the device next
        with pytest.raises(RuntimeError, match="invalid argument"):
            torch.ones(1, device=DEVICE).cpu()
