"""Norms, gated activation and merging of states: golden vectors where there are any, definitions elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels.errors import KernelError
from paged_batches import dense_float64, make_batch
from test_fake_golden import load

CASES = {case["name"]: tensors for case, tensors in load("small_ops")}


def test_rmsnorm_is_the_real_ones() -> None:
    t = CASES["rmsnorm"]
    out = flashinfer.rmsnorm(t["x"], t["w"])
    torch.testing.assert_close(out, t["out"], atol=0, rtol=2**-10)
    given = torch.empty_like(out)
    assert flashinfer.rmsnorm(t["x"], t["w"], 1e-6, given) is given
    assert torch.equal(given, out)
    assert not torch.equal(flashinfer.rmsnorm(t["x"], t["w"], eps=1.0), out)


def test_fused_add_rmsnorm_works_in_place_like_the_real_one() -> None:
    t = {name: tensor.clone() for name, tensor in CASES["fused_add_rmsnorm"].items()}
    assert flashinfer.fused_add_rmsnorm(t["x"], t["residual"], t["w"]) is None
    assert torch.equal(t["residual"], t["residual_after"])
    torch.testing.assert_close(t["x"], t["x_after"], atol=0, rtol=2**-10)


@pytest.mark.parametrize("name", ["merge_plain", "merge_bf16", "merge_neginf_all"])
def test_merge_state_is_the_real_one(name: str) -> None:
    t = CASES[name]
    v, s = flashinfer.merge_state(t["v_a"], t["s_a"], t["v_b"], t["s_b"])
    torch.testing.assert_close(v, t["v"], atol=1e-3, rtol=torch.finfo(v.dtype).eps)
    assert s.dtype == torch.float32
    torch.testing.assert_close(s, t["s"], atol=1e-5, rtol=1e-6)


def test_two_empty_states_stay_empty() -> None:
    v, s = flashinfer.merge_state(
        torch.zeros(2, 1, 8),
        torch.full((2, 1), -math.inf),
        torch.zeros(2, 1, 8),
        torch.full((2, 1), -math.inf),
    )
    assert not v.any()
    assert bool((s == -math.inf).all())


def test_states_of_two_halves_merge_into_attention_over_both() -> None:
    """What a cascade relies on: the wrappers' base-2 LSE and merge_state speak of the same thing."""
    batch = make_batch((16, 32), page_size=16, dtype=torch.float32)
    want, want_lse = dense_float64(batch, causal=False)
    workspace = torch.empty(64, dtype=torch.uint8)
    states = []
    for pages in ([0, 1, 1], [0, 0, 2]):
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace)
        counts = torch.tensor(pages, dtype=torch.int32)
        full = torch.full((2,), 16, dtype=torch.int32)
        indices = batch.indices[:1] if pages[1] else batch.indices[1:]
        wrapper.plan(counts, indices.clone(), full, 8, 2, 64, 16, q_data_type=torch.float32)
        states += list(wrapper.run_return_lse(batch.q, (batch.k, batch.v)))
    v, s = flashinfer.merge_state(*states)
    torch.testing.assert_close(v.double(), want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(s.double(), want_lse / math.log(2), atol=1e-5, rtol=1e-5)


def test_silu_and_mul() -> None:
    x = torch.randn(3, 5, 16, dtype=torch.bfloat16)
    gate, up = x[..., :8].double(), x[..., 8:].double()
    out = flashinfer.silu_and_mul(x)
    torch.testing.assert_close(out.double(), gate / (1 + torch.exp(-gate)) * up, atol=1e-6, rtol=2**-8)
    given = torch.empty_like(out)
    assert flashinfer.silu_and_mul(x, given) is given
    assert torch.equal(given, out)
    with pytest.raises(ValueError, match="The last dimension must be even"):
        flashinfer.silu_and_mul(torch.randn(3, 7, dtype=torch.bfloat16))


HALF = torch.zeros(4, 8, dtype=torch.float16)
STATE = torch.zeros(4, 2, 8)
LSE = torch.zeros(4, 2)
REFUSED: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "weight's length": ("shapes_differ", "weight", lambda: flashinfer.rmsnorm(HALF, HALF[0, :4])),
    "weight's type": ("dtypes_differ", "weight", lambda: flashinfer.rmsnorm(HALF, HALF[0].float())),
    "out's shape": ("shapes_differ", "out", lambda: flashinfer.rmsnorm(HALF, HALF[0], out=HALF[:1])),
    "residual": ("shapes_differ", "residual", lambda: flashinfer.fused_add_rmsnorm(HALF, HALF[:1], HALF[0])),
    "half of out": ("shapes_differ", "out", lambda: flashinfer.silu_and_mul(HALF, HALF)),
    "v_b": ("shapes_differ", "v_b", lambda: flashinfer.merge_state(STATE, LSE, STATE[:1], LSE)),
    "s_b": ("shapes_differ", "s_b", lambda: flashinfer.merge_state(STATE, LSE, STATE, LSE.t())),
    "v_a strided": (
        "not_contiguous",
        "v_a",
        lambda: flashinfer.merge_state(STATE.transpose(0, 1).contiguous().transpose(0, 1), LSE, STATE, LSE),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_shapes_and_types_are_checked(name: str) -> None:
    code, argument, call = REFUSED[name]
    with pytest.raises(KernelError) as caught:
        call()
    assert (caught.value.code, caught.value.argument) == (code, argument)
