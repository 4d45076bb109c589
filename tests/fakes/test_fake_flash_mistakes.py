"""FlashAttention 3: each measured mistake in both modes, and the arguments that the fake doesn't compute."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from paged_batches import i32, make_batch, table_of
from sgl_kernel.flash_attn import flash_attn_with_kvcache

KV_LENS = (20, 33, 48)
Q_LENS = (3, 1, 5)
LARGE_POOL = 200


def right_call(spare_pages: int = 5) -> dict[str, Any]:
    batch = make_batch(KV_LENS, Q_LENS, spare_pages=spare_pages)
    return {
        "q": batch.q,
        "k_cache": batch.k,
        "v_cache": batch.v,
        "page_table": table_of(batch),
        "cache_seqlens": i32(KV_LENS),
        "cu_seqlens_q": batch.qo_indptr,
        "cu_seqlens_k_new": i32([0, 20, 53, 101]),
        "max_seqlen_q": 5,
        "causal": True,
    }


def positions(call: dict[str, Any]) -> dict[str, Any]:
    return {"page_table": call["page_table"] * 16}


def every_position(call: dict[str, Any]) -> dict[str, Any]:
    table = (call["page_table"].unsqueeze(-1) * 16 + torch.arange(16, dtype=torch.int32)).flatten(1)
    return {"page_table": table}


INT32 = (RuntimeError, "must have dtype")
# name -> what to change, the code, the argument, what the real kernel did
MISTAKES: dict[str, tuple[Any, str, str, Any]] = {
    "int64 page_table": (
        lambda c: {"page_table": c["page_table"].long()},
        "flash_not_int32",
        "page_table",
        (RuntimeError, "page_table must have dtype torch.int32"),
    ),
    "int64 cache_seqlens": (
        lambda c: {"cache_seqlens": c["cache_seqlens"].long()},
        "flash_not_int32",
        "cache_seqlens",
        (RuntimeError, "seqused_k must have dtype int32"),
    ),
    "int64 cu_seqlens_q": (
        lambda c: {"cu_seqlens_q": c["cu_seqlens_q"].long()},
        "flash_not_int32",
        "cu_seqlens_q",
        (RuntimeError, "cu_seqlens_q must have dtype torch.int32"),
    ),
    "no max_seqlen_q": (
        lambda c: {"max_seqlen_q": None},
        "max_seqlen_q_missing",
        "max_seqlen_q",
        (RuntimeError, "max_seqlen_q must be provided if cu_seqlens_q is provided"),
    ),
    "max_seqlen_q too small": (
        lambda c: {"max_seqlen_q": 2},
        "max_seqlen_q_too_small",
        "max_seqlen_q",
        "right",
    ),
    "token positions for pages": (positions, "page_table_holds_token_positions", "page_table", "nan"),
    "every token's position": (every_position, "page_table_holds_token_positions", "page_table", "nan"),
    "page counts for lengths": (
        lambda c: {"cache_seqlens": i32([2, 3, 3])},
        "cu_seqlens_k_differs",
        "cache_seqlens",
        "garbage",
    ),
    "page table too narrow": (
        lambda c: {"page_table": c["page_table"][:, :2].contiguous()},
        "page_table_too_narrow",
        "page_table",
        "garbage",
    ),
    "page out of range": (
        lambda c: {"page_table": torch.full_like(c["page_table"], 100_003)},
        "page_out_of_range",
        "page_table",
        "illegal",
    ),
    "negative page": (
        lambda c: {"page_table": torch.full_like(c["page_table"], -1)},
        "page_negative",
        "page_table",
        "garbage",
    ),
    "cu_seqlens_q without 0": (
        lambda c: {"cu_seqlens_q": i32([3, 4, 9])},
        "cu_seqlens_q_wrong",
        "cu_seqlens_q",
        (RuntimeError, "batch_size must be equal to batch_size_k"),
    ),
    "cu_seqlens_q short of q": (
        lambda c: {"cu_seqlens_q": i32([0, 3, 4, 8])},
        "cu_seqlens_q_wrong",
        "cu_seqlens_q",
        "unmeasured",
    ),
    "cache_seqlens one short": (
        lambda c: {"cache_seqlens": i32([20, 33])},
        "cache_seqlens_wrong_count",
        "cache_seqlens",
        (RuntimeError, "seqused_k must have shape (batch_size)"),
    ),
    "page_table one row short": (
        lambda c: {"page_table": c["page_table"][:2]},
        "page_table_shape",
        "page_table",
        (RuntimeError, "batch_size must be equal to batch_size_k"),
    ),
    "page_table flat": (
        lambda c: {"page_table": c["page_table"].flatten()},
        "page_table_shape",
        "page_table",
        (RuntimeError, "page_table must have shape (batch_size_k, max_num_pages_per_seq)"),
    ),
    "heads not divisible": (
        lambda c: {"q": torch.randn(9, 7, 64).half()},
        "heads_not_divisible",
        "q",
        (RuntimeError, "Number of heads in key/value must divide number of heads in query"),
    ),
    "another type of cache": (
        lambda c: {"k_cache": c["k_cache"].bfloat16()},
        "flash_dtypes_differ",
        "k_cache",
        (RuntimeError, "query and key must have the same dtype"),
    ),
    "float64": (
        lambda c: {"q": c["q"].double(), "k_cache": c["k_cache"].double(), "v_cache": c["v_cache"].double()},
        "flash_dtype",
        "q",
        (RuntimeError, "FlashAttention only supports fp16, bf16, and fp8_e4m3 data type"),
    ),
    "cache with a strided last dimension": (
        lambda c: {"k_cache": c["k_cache"].transpose(2, 3).contiguous().transpose(2, 3)},
        "last_dim_not_contiguous",
        "k_cache",
        (AssertionError, "k_cache must have contiguous last dimension"),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_strict(name: str) -> None:
    change, code, argument, real = MISTAKES[name]
    call = right_call()
    with pytest.raises(KernelError) as caught:
        flash_attn_with_kvcache(**(call | change(call)))
    error = caught.value
    assert (error.code, error.argument) == (code, argument)
    assert "{" not in error.text("zh") + error.text("en")
    if isinstance(real, tuple):
        assert isinstance(error, real[0])
        assert real[1] in str(error)


@pytest.mark.parametrize("name", MISTAKES)
def test_faithful(name: str) -> None:
    change, code, _, real = MISTAKES[name]
    call = right_call()
    right = flash_attn_with_kvcache(**call)
    wrong = call | change(call)
    with mode.use("faithful"):
        if isinstance(real, tuple):
            with pytest.raises(real[0], match=re.escape(real[1])) as caught:
                flash_attn_with_kvcache(**wrong)
            assert not isinstance(caught.value, KernelError)
        elif real == "unmeasured":
            with pytest.raises(KernelError) as refused:
                flash_attn_with_kvcache(**wrong)
            assert refused.value.code == "not_modelled"
            assert refused.value.params["mistake"] == code
        elif real == "illegal":
            for arguments in (wrong, call):
                with pytest.raises(KernelError, match="illegal memory access"):
                    flash_attn_with_kvcache(**arguments)
        else:
            out = flash_attn_with_kvcache(**wrong)
            assert out.shape == right.shape
            if real == "nan":
                assert bool(out.isnan().all())
            elif real == "right":
                assert torch.equal(out, right)
            else:
                assert not torch.allclose(out, right, atol=1e-2)
                assert torch.equal(out, flash_attn_with_kvcache(**wrong))


def test_rows_beyond_the_tiles_of_max_seqlen_q_stay_unwritten() -> None:
    batch = make_batch(KV_LENS, (3, 1, 40))
    call = right_call() | {"q": batch.q, "cu_seqlens_q": batch.qo_indptr, "max_seqlen_q": 40}
    right, right_lse = flash_attn_with_kvcache(**call, return_softmax_lse=True)
    with mode.use("faithful"):
        out, lse = flash_attn_with_kvcache(**(call | {"max_seqlen_q": 3}), return_softmax_lse=True)
    wrong = list(range(4 + 16, 44))  # a tile of 64 holds 16 rows of 4 heads a KV head
    kept = [row for row in range(44) if row not in wrong]
    assert torch.equal(out[kept], right[kept])
    assert torch.equal(lse[:, kept], right_lse[:, kept])
    assert not torch.allclose(out[wrong], right[wrong], atol=1e-2)


def test_positions_that_fit_the_pool_are_taken_for_pages() -> None:
    """A pool with room hides the mistake: nothing can be seen, on a GPU or here."""
    call = right_call(spare_pages=LARGE_POOL * 16)
    call["page_table"] = call["page_table"] % 8 * 16
    flash_attn_with_kvcache(**call)


OPTIONS = {
    "k": torch.zeros(1),
    "v": torch.zeros(1),
    "qv": torch.zeros(1),
    "rotary_cos": torch.zeros(1),
    "rotary_sin": torch.zeros(1),
    "cache_batch_idx": torch.zeros(1),
    "cache_leftpad": torch.zeros(1),
    "rotary_seqlens": torch.zeros(1),
    "q_descale": torch.zeros(1),
    "k_descale": torch.zeros(1),
    "v_descale": torch.zeros(1),
    "attention_chunk": 4,
    "scheduler_metadata": torch.zeros(1),
    "only_qv": True,
    "score_mod": max,
    "aux_tensors": [torch.zeros(1)],
    "ver": 4,
    "cache_seqlens": None,
}


@pytest.mark.parametrize("name", OPTIONS)
def test_what_is_not_computed_is_refused(name: str) -> None:
    with pytest.raises(NotImplementedError) as caught:
        flash_attn_with_kvcache(**(right_call() | {name: OPTIONS[name]}))
    assert isinstance(caught.value, KernelError)
    assert (caught.value.code, caught.value.argument) == ("not_modelled", name)


def test_hints_change_nothing() -> None:
    call = right_call()
    want = flash_attn_with_kvcache(**call)
    hints = {"num_splits": 4, "pack_gqa": True, "sm_margin": 2, "attention_chunk": 0, "ver": 3}
    out = torch.empty_like(want)
    assert flash_attn_with_kvcache(**call, **hints, out=out) is out
    assert torch.equal(out, want)
