"""Whatever stands in the arrays, a strict fake answers with a KernelError or with numbers, and quickly.

A checker hands learners' tensors to the fakes; an IndexError from inside would be no explanation.
"""

from __future__ import annotations

import random

import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_batches import PATHS, PREFILL_PATHS, PagedBatch, i32, make_batch, plan, table_of, wrapper_for
from sgl_kernel.flash_attn import flash_attn_with_kvcache

DTYPES = (torch.int64, torch.int16, torch.uint8, torch.float32, torch.bool, torch.complex64)
ODD_VALUES = (-(2**31), -1, 0, 1, 2, 15, 16, 17, 999, 2**31 - 1)


def spoil(tensor: torch.Tensor, rng: random.Random) -> object:
    """The array with one thing wrong with it, or several."""
    for _ in range(rng.randint(1, 2)):
        kind = rng.randrange(7)
        if kind == 0 and tensor.numel():
            tensor = tensor.clone()
            tensor.view(-1)[rng.randrange(tensor.numel())] = rng.choice(ODD_VALUES)
        elif kind == 1:
            tensor = tensor[: rng.randint(0, tensor.shape[0])] if tensor.ndim else tensor
        elif kind == 2 and tensor.ndim:
            tensor = torch.cat([tensor, tensor])
        elif kind == 3:
            return tensor.to(rng.choice(DTYPES))
        elif kind == 4:
            tensor = rng.choice([tensor.unsqueeze(0), tensor.sum(dtype=torch.int32), tensor.flatten()])
        elif kind == 5 and tensor.ndim:
            tensor = tensor.flip(0)[::2] if rng.random() < 0.5 else torch.stack([tensor, tensor], -1)[..., 0]
        elif kind == 6:
            return rng.choice([tensor.tolist(), None, 3])
    return tensor


def answers(batch: PagedBatch, path: str) -> None:
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    out = wrapper.run(batch.q, (batch.k, batch.v))
    assert out.shape == batch.q.shape


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), which=st.sampled_from(["strict", "faithful"]))
def test_wrappers_answer_anything(seed: int, which: str) -> None:
    rng = random.Random(seed)
    path = rng.choice(PATHS)
    page_size = rng.choice([1, 4, 16])
    batch = make_batch(
        (20, 0, 33, 16), (2, 1, 1, 3) if path in PREFILL_PATHS else None, page_size=page_size, head_dim=8
    )
    if rng.random() < 0.5:
        batch = batch.but(seq_lens=i32(batch.kv_lens))
    names = [
        name
        for name in ("indptr", "indices", "last", "qo_indptr", "seq_lens")
        if getattr(batch, name) is not None
    ]
    for name in rng.sample(names, rng.randint(1, 2)):
        batch = batch.but(**{name: spoil(getattr(batch, name), rng)})
    mode.new_context()
    with mode.use(which):
        try:
            answers(batch, path)
        except KernelError as refusal:
            refusal.text("zh")
        except (RuntimeError, ValueError, AttributeError, TypeError):
            if which == "strict":
                raise


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), which=st.sampled_from(["strict", "faithful"]))
def test_flash_attention_answers_anything(seed: int, which: str) -> None:
    rng = random.Random(seed)
    batch = make_batch((20, 0, 33, 16), (2, 1, 1, 3), page_size=rng.choice([1, 4, 16]), head_dim=8)
    call = {
        "page_table": table_of(batch),
        "cache_seqlens": i32(batch.kv_lens),
        "cu_seqlens_q": batch.qo_indptr,
        "cu_seqlens_k_new": i32([0, 20, 20, 53, 69]),
    }
    for name in rng.sample(sorted(call), rng.randint(1, 2)):
        call[name] = spoil(call[name], rng)
    mode.new_context()
    with mode.use(which):
        try:
            out = flash_attn_with_kvcache(batch.q, batch.k, batch.v, **call, max_seqlen_q=3, causal=True)
            assert out.shape == batch.q.shape
        except KernelError as refusal:
            refusal.text("zh")
        except (RuntimeError, ValueError, AttributeError, TypeError):
            if which == "strict":
                raise


@pytest.mark.parametrize("path", PATHS)
def test_the_unspoilt_batch_is_answered(path: str) -> None:
    answers(make_batch((20, 0, 33, 16), (2, 1, 1, 3) if path in PREFILL_PATHS else None, head_dim=8), path)
