"""KV without pages: what strict mode says about a ragged batch, a single request and flash_attn_varlen_func, and that
right ones are never refused.
"""

from __future__ import annotations

from typing import Any

import flashinfer
import pytest
import torch
import torch.nn.functional as F
from fake_kernels import mode
from fake_kernels.errors import KernelError
from paged_batches import cumulated, i32, make_batch, plan, wrapper_for
from sgl_kernel.flash_attn import flash_attn_varlen_func

Q_LENS, KV_LENS = (3, 1, 5), (20, 33, 48)


def numbers(
    dtype: torch.dtype = torch.float16, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(sum(Q_LENS), 8, 64, generator=generator).to(dtype)
    k, v = (torch.randn(sum(KV_LENS), 2, 64, generator=generator).to(dtype) for _ in range(2))
    return q, k, v


Q, K, V = numbers()


def ragged(backend: str = "fa2", **options: Any) -> Any:
    return flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        torch.empty(1 << 23, dtype=torch.uint8), backend=backend, **options
    )


def planned(backend: str = "fa2", **changes: Any) -> Any:
    wrapper = ragged(backend)
    given = {
        "qo_indptr": cumulated(Q_LENS),
        "kv_indptr": cumulated(KV_LENS),
        "head_dim_qk": 64,
        "causal": True,
    }
    sizes = {"num_qo_heads": 8, "num_kv_heads": 2}
    wrapper.plan(**{**given, **sizes, **changes})
    return wrapper


def refused(call: Any) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("backend", ["fa2", "fa3", "auto"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_plain_attention_is_the_reference_backends_call_bit_for_bit(backend: str, dtype: torch.dtype) -> None:
    q, k, v = numbers(dtype)
    out = planned(backend, q_data_type=dtype).run(q, k, v)
    row = token = 0
    for n, kv in zip(Q_LENS, KV_LENS, strict=True):
        mask = torch.arange(kv).unsqueeze(0) <= torch.arange(kv - n, kv).unsqueeze(1)
        of = (q[row : row + n], k[token : token + kv], v[token : token + kv])
        want = F.scaled_dot_product_attention(
            *(x.transpose(0, 1).unsqueeze(0) for x in of), attn_mask=mask, scale=64**-0.5, enable_gqa=True
        )
        assert torch.equal(out[row : row + n], want.squeeze(0).transpose(0, 1))
        alone = flashinfer.single_prefill_with_kv_cache(*of, causal=True, backend=backend)
        assert torch.equal(out[row : row + n], alone)
        row, token = row + n, token + kv


def test_a_paged_batch_and_a_ragged_one_agree_bit_for_bit() -> None:
    batch = make_batch(KV_LENS, Q_LENS, page_size=1)
    paged = wrapper_for("fa2")
    plan(paged, batch)
    order = batch.indices.long()
    out = planned().run(batch.q, batch.k[order].squeeze(1), batch.v[order].squeeze(1))
    assert torch.equal(out, paged.run(batch.q, (batch.k, batch.v)))


MISTAKES: dict[str, tuple[str, dict[str, Any]]] = {
    "lengths for sums": ("ragged_kv_indptr_count", {"kv_indptr": i32(KV_LENS)}),
    "kv decreases": ("ragged_kv_indptr_decreasing", {"kv_indptr": i32([0, 53, 20, 101])}),
    "q decreases": ("qo_indptr_decreasing", {"qo_indptr": i32([0, 4, 3, 9])}),
    "q not from 0": ("qo_indptr_no_leading_zero", {"qo_indptr": i32([1, 3, 4, 9])}),
    "int64 q": ("qo_indptr_not_int32", {"qo_indptr": cumulated(Q_LENS).long()}),
    "int64 kv": ("kv_indptr_not_int32", {"kv_indptr": cumulated(KV_LENS).long()}),
    "strided": ("not_contiguous", {"kv_indptr": torch.stack([cumulated(KV_LENS)] * 2, 1)[:, 0]}),
    "no requests": ("empty_batch", {"qo_indptr": i32([0]), "kv_indptr": i32([0])}),
    "a list": ("not_a_tensor", {"kv_indptr": [0, 20, 53, 101]}),
    "two dimensions": ("not_one_dimensional", {"kv_indptr": cumulated(KV_LENS).view(2, 2)}),
    "heads": ("heads_not_divisible", {"num_qo_heads": 9}),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_of_a_plan(name: str) -> None:
    code, changes = MISTAKES[name]
    error = refused(lambda: planned(**changes))
    assert error.code == code
    with mode.use("faithful"), pytest.raises((AttributeError, ValueError, RuntimeError)) as caught:
        planned(**changes)
    acted = caught.value
    assert acted.code == "not_modelled" if isinstance(acted, KernelError) else str(acted) in str(error)


def test_pages_in_place_of_tokens() -> None:
    """The running sum of pages plans well and stands out when k comes."""
    pages = cumulated([2, 3, 3])
    error = refused(lambda: planned(kv_indptr=pages).run(Q, K, V))
    assert (error.code, error.argument) == ("ragged_kv_rows", "k")
    assert "has 101 rows, kv_indptr ends at 8" in error.what["en"]
    assert "pages is for the paged wrapper" in error.fix["en"]


def test_mistakes_of_a_run() -> None:
    calls: dict[str, tuple[str, Any]] = {
        "q_rows": ("q", lambda w: w.run(Q[:5], K, V)),
        "ragged_kv_rows": ("v", lambda w: w.run(Q, K, V[:-1])),
        "q_dtype": ("q", lambda w: w.run(Q.float(), K, V)),
        "k_dtype": ("k", lambda w: w.run(Q, K.float(), V)),
        "v_dtype": ("v", lambda w: w.run(Q, K, V.float())),
        "q_shape": ("q", lambda w: w.run(Q[:, :4], K, V)),
        "cache_shape": ("k", lambda w: w.run(Q, K[:, :1], V[:, :1])),
        "kv_shape": ("k", lambda w: w.run(Q, K.unsqueeze(1), V.unsqueeze(1))),
    }
    for code, (argument, call) in calls.items():
        wrapper = planned()
        error = refused(lambda c=call, w=wrapper: c(w))
        assert (error.code, error.argument) == (code, argument)
    with pytest.raises(ValueError, match=r"For ragged prefill, q must have shape"):
        planned().run(Q[:5], K, V)
    with pytest.raises(AttributeError, match="_cached_q_data_type"):
        ragged().run(Q, K, V)


def test_tensors_must_not_change_after_plan() -> None:
    kv_indptr = cumulated(KV_LENS)
    wrapper = planned(kv_indptr=kv_indptr)
    kv_indptr[1] += 1
    assert refused(lambda: wrapper.run(Q, K, V)).code == "changed_after_plan"
    wrapper = planned(kv_indptr=kv_indptr, non_blocking=False)
    kv_indptr[1] -= 1
    wrapper.run(Q, K, V)


def test_auto_is_resolved_in_every_plan() -> None:
    wrapper = ragged("auto")
    arrays = (cumulated(Q_LENS), cumulated(KV_LENS))
    for head_dim, backend in ((64, "fa3"), (72, "fa2"), (128, "fa3")):
        wrapper.plan(*arrays, 8, 2, head_dim, non_blocking=False)
        assert wrapper._backend == backend


@pytest.mark.parametrize("backend", ["fa3", "auto"])
def test_fa3_takes_tokens_for_heads_in_hnd(backend: str) -> None:
    wrapper = ragged(backend, kv_layout="HND")
    arrays = (cumulated(Q_LENS), cumulated(KV_LENS), 8, 2, 64)
    k, v = K.transpose(0, 1).contiguous(), V.transpose(0, 1).contiguous()
    calls = (
        lambda: wrapper.plan(*arrays),
        lambda: flashinfer.single_prefill_with_kv_cache(Q, k, v, kv_layout="HND", backend=backend),
    )
    for call in calls:
        error = refused(call)
        assert (error.code, error.argument) == ("hnd_on_fa3", "kv_layout")
        assert "ends the process: SIGFPE" in error.real["en"]
        with mode.use("faithful"):
            assert refused(call).code == "not_modelled"
    on_fa2 = ragged("fa2", kv_layout="HND")
    on_fa2.plan(*arrays, causal=True)
    assert torch.equal(on_fa2.run(Q, k, v), planned().run(Q, K, V))


def test_cuda_graph_buffers() -> None:
    buffers = {"qo_indptr_buf": i32([0] * 4), "kv_indptr_buf": i32([0] * 4)}
    wrapper = ragged(use_cuda_graph=True, **buffers)
    wrapper.plan(cumulated(Q_LENS), cumulated(KV_LENS), 8, 2, 64, causal=True)
    assert torch.equal(buffers["kv_indptr_buf"], cumulated(KV_LENS))
    assert torch.equal(wrapper.run(Q, K, V), planned().run(Q, K, V))
    with pytest.raises(ValueError, match="batch size should be fixed"):
        wrapper.plan(i32([0, 3]), i32([0, 20]), 8, 2, 64)
    with pytest.raises(ValueError, match="cannot exceed the number of rows"):
        wrapper.plan(i32([0, 3, 4, 10]), cumulated(KV_LENS), 8, 2, 64)
    with pytest.raises(ValueError, match=r"qo_indptr_buf should be a torch\.Tensor"):
        ragged(use_cuda_graph=True, kv_indptr_buf=i32([0] * 4))
    with pytest.raises(ValueError, match="should be the same as qo_indptr_buf"):
        ragged(use_cuda_graph=True, qo_indptr_buf=i32([0] * 4), kv_indptr_buf=i32([0] * 3))


def test_forward_brings_its_own_options() -> None:
    wrapper = planned()
    out = wrapper.forward(Q, K, V)
    assert torch.equal(out, planned(causal=False).run(Q, K, V))
    _, lse = wrapper.forward_return_lse(Q, K, V, causal=True)
    torch.testing.assert_close(lse, planned().run_return_lse(Q, K, V)[1])


OPTIONS = {
    "use_fp16_qk_reduction": True,
    "prefix_len_ptr": torch.zeros(1),
    "max_item_len_ptr": torch.zeros(1),
    "seq_lens": torch.zeros(1),
    "v_indptr": torch.zeros(1),
    "o_indptr": torch.zeros(1),
    "uniform_q_len": 1,
    "window_left": -2,
    "rope_theta": 1e4,
}


@pytest.mark.parametrize("name", OPTIONS)
def test_plan_options_that_are_not_computed(name: str) -> None:
    error = refused(lambda: planned(**{name: OPTIONS[name]}))
    assert (error.code, error.argument) == ("not_modelled", name)


def test_positions_and_caps_that_are_not_computed() -> None:
    for changes in (
        {"pos_encoding_mode": "ALIBI", "backend": "fa3"},
        {"backend": "fa3", "pos_encoding_mode": "ROPE_LLAMA"},
    ):
        assert refused(lambda c=changes: planned(**c)).argument == "pos_encoding_mode"
    capped = {"pos_encoding_mode": "ALIBI", "logits_soft_cap": 2.0}
    assert refused(lambda: planned(**capped)).argument == "logits_soft_cap"
    with pytest.raises(KeyError, match="Invalid pos_encoding_mode X"):
        planned(pos_encoding_mode="X")


def test_single_requests_are_checked() -> None:
    prefill, decode = flashinfer.single_prefill_with_kv_cache, flashinfer.single_decode_with_kv_cache
    calls = {
        "kv_shape": lambda: prefill(Q, K[:, :, :32], V),
        "kv_dtype": lambda: prefill(Q, K, V.float()),
        "heads_not_divisible": lambda: prefill(Q[:, :3], K, V),
        "group_size_unsupported": lambda: decode(Q[0, :5], K[:, :1].contiguous(), V[:, :1].contiguous()),
        "last_dim_not_contiguous": lambda: prefill(Q, K.transpose(0, 2).contiguous().transpose(0, 2), V),
        "bad_option": lambda: prefill(Q, K, V, kv_layout="NDH"),
        "not_modelled": lambda: prefill(Q, K, V, backend="cutlass"),
    }
    for code, call in calls.items():
        assert refused(call).code == code
    assert refused(lambda: decode(Q, K, V)).code == "kv_shape"
    assert refused(lambda: decode(Q[0], K, V[:, :, :32])).argument == "v"
    of_one_head = (Q[0, :5], K[:, :1], V[:, :1])
    assert decode(*of_one_head, use_tensor_cores=True).shape == (5, 64)
    apart = refused(lambda: decode(Q[0, :4], *of_one_head[1:]))
    assert apart.code == "not_contiguous"
    assert "k must be contiguous" in apart.real["en"]
    with mode.use("faithful"), pytest.raises(RuntimeError, match="v must be contiguous") as noticed:
        decode(Q[0], K, V.transpose(0, 2).contiguous().transpose(0, 2))
    assert not isinstance(noticed.value, KernelError)
    assert decode(Q[0, :4], *(x.contiguous() for x in of_one_head[1:])).shape == (4, 64)


def varlen(**changes: Any) -> Any:
    given = {"q": Q, "k": K, "v": V, "cu_seqlens_q": cumulated(Q_LENS), "cu_seqlens_k": cumulated(KV_LENS)}
    return flash_attn_varlen_func(
        **{**given, "max_seqlen_q": 5, "max_seqlen_k": 48, "causal": True, **changes}
    )


def test_varlen_is_the_ragged_wrappers_twin() -> None:
    assert torch.equal(varlen(), planned().run(Q, K, V))
    out = torch.empty_like(Q)
    assert varlen(out=out) is out


VARLEN: dict[str, tuple[str, dict[str, Any]]] = {
    "max_seqlens_missing": ("max_seqlen_k", {"max_seqlen_k": None}),
    "max_seqlen_q_too_small": ("max_seqlen_q", {"max_seqlen_q": 4}),
    "max_seqlen_k_too_small": ("max_seqlen_k", {"max_seqlen_k": 47}),
    "flash_not_int32": ("cu_seqlens_k", {"cu_seqlens_k": cumulated(KV_LENS).long()}),
    "cu_seqlens_q_wrong": ("cu_seqlens_q", {"cu_seqlens_q": i32([0, 3, 4, 8])}),
    "cu_seqlens_k_wrong": ("cu_seqlens_k", {"cu_seqlens_k": cumulated([2, 3, 3])}),
    "flash_shape": ("cu_seqlens_k", {"cu_seqlens_k": i32([0, 20, 101])}),
    "flash_dtypes_differ": ("k", {"k": K.float()}),
    "heads_not_divisible": ("q", {"q": Q[:, :3]}),
    "sinks_shape": ("sinks", {"sinks": torch.zeros(8, dtype=torch.float16)}),
    "not_modelled": ("page_table", {"page_table": torch.zeros(3, 4)}),
}


@pytest.mark.parametrize("code", VARLEN)
def test_mistakes_of_varlen(code: str) -> None:
    argument, changes = VARLEN[code]
    error = refused(lambda: varlen(**changes))
    assert (error.code, error.argument) == (code, argument)


def test_rows_beyond_the_tiles_of_max_seqlen_q_are_not_written() -> None:
    q = torch.cat([Q[:3], torch.randn(40, 8, 64).half(), Q[4:]])
    long = {"q": q, "cu_seqlens_q": cumulated([3, 40, 5])}
    want = varlen(**long, max_seqlen_q=40)
    with mode.use("faithful"):
        out = varlen(**long, max_seqlen_q=3)
    assert torch.equal(out[:19], want[:19])
    assert not torch.equal(out[19:43], want[19:43])
    assert torch.equal(out[43:], want[43:])
