"""The fakes against what the real kernels returned on an H200.

Tolerances are those of the real kernels' own rounding against a float32 reference: outputs 2e-3 (float16)
and 9e-3 (bfloat16), plus half a unit in the last place for the rounding of the fake's output; natural LSE
2e-4 and 1e-3 where scores pass through half precision (tensor cores), times 1 / ln 2 in base 2.
Empty requests and blind rows must be exactly 0 with LSE -inf.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import flashinfer
import pytest
import torch
from safetensors.torch import load_file
from sgl_kernel.flash_attn import flash_attn_with_kvcache

GOLDEN = Path(__file__).parent / "golden"
OUT_TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 9e-3}
LSE_TOLERANCE = {torch.float16: 2e-4, torch.bfloat16: 1e-3}


def load(name: str) -> list[tuple[dict[str, Any], dict[str, torch.Tensor]]]:
    tensors = load_file(GOLDEN / f"{name}.safetensors")
    cases = json.loads((GOLDEN / f"{name}.json").read_text())
    return [
        (case, {key.split("/")[1]: t for key, t in tensors.items() if key.startswith(case["name"] + "/")})
        for case in cases
    ]


def params(name: str) -> list[Any]:
    return [pytest.param(case, tensors, id=case["name"]) for case, tensors in load(name)]


def check_out(out: torch.Tensor, want: torch.Tensor) -> None:
    torch.testing.assert_close(out, want, atol=OUT_TOLERANCE[out.dtype], rtol=torch.finfo(out.dtype).eps / 2)


def check(out: torch.Tensor, lse: torch.Tensor, want: dict[str, torch.Tensor], unit: float) -> None:
    """`unit` is one nat in the LSE's base."""
    assert out.dtype == want["out"].dtype
    assert lse.dtype == torch.float32
    check_out(out, want["out"])
    blind = want["lse"] == -math.inf
    assert torch.equal(lse == -math.inf, blind)
    assert not out[blind if blind.shape == out.shape[:2] else blind.t()].any()
    torch.testing.assert_close(lse[~blind], want["lse"][~blind], atol=LSE_TOLERANCE[out.dtype] * unit, rtol=0)


@pytest.mark.parametrize(("case", "t"), params("decode"))
def test_decode(case: dict[str, Any], t: dict[str, torch.Tensor]) -> None:
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        torch.empty(1024, dtype=torch.uint8), use_tensor_cores=case["use_tensor_cores"]
    )
    sizes = (case["num_qo_heads"], case["num_kv_heads"], case["head_dim"], case["page_size"])
    wrapper.plan(t["indptr"], t["indices"], t["last"], *sizes, q_data_type=t["q"].dtype)
    plain = wrapper.run(t["q"], (t["k"], t["v"]))
    out, lse = wrapper.run_return_lse(t["q"], (t["k"], t["v"]))
    check(out, lse, t, 1 / math.log(2))
    check(plain, lse, t, 1 / math.log(2))


@pytest.mark.parametrize("backend", ["fa2", "auto"])
@pytest.mark.parametrize(("case", "t"), params("prefill"))
def test_prefill(case: dict[str, Any], t: dict[str, torch.Tensor], backend: str) -> None:
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
        torch.empty(1024, dtype=torch.uint8), backend=backend
    )
    arrays = (t["qo"], t["indptr"], t["indices"], t["last"])
    sizes = (case["num_qo_heads"], case["num_kv_heads"], case["head_dim"], case["page_size"])
    wrapper.plan(*arrays, *sizes, causal=case["causal"], q_data_type=t["q"].dtype)
    assert wrapper._backend == ("fa3" if backend == "auto" else "fa2")
    plain = wrapper.run(t["q"], (t["k"], t["v"]))
    out, lse = wrapper.run_return_lse(t["q"], (t["k"], t["v"]))
    check(out, lse, t, 1 / math.log(2))
    check(plain, lse, t, 1 / math.log(2))


@pytest.mark.parametrize(("case", "t"), params("flash"))
def test_flash_attention(case: dict[str, Any], t: dict[str, torch.Tensor]) -> None:
    options = {
        "page_table": t["page_table"],
        "cache_seqlens": t["cache_seqlens"],
        "cu_seqlens_q": t["cu_seqlens_q"],
        "max_seqlen_q": max(case["q_lens"]),
        "causal": case["causal"],
    }
    plain = flash_attn_with_kvcache(t["q"], t["k"], t["v"], **options)
    out, lse = flash_attn_with_kvcache(t["q"], t["k"], t["v"], **options, return_softmax_lse=True)
    assert lse.shape == (case["num_qo_heads"], t["q"].shape[0])
    blind = t["lse"].t() == -math.inf
    assert not plain[blind].any()
    check_out(plain, t["out"])
    check_out(out, t["out"])
    torch.testing.assert_close(lse, t["lse"], atol=1e-5, rtol=0)
