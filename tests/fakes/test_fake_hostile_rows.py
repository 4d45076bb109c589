"""Whatever stands in the arguments of norms, merges, rotary embedding, sampling, page operations and routing: strict
mode answers with a KernelError or a result, as in test_fake_hostile.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import flashinfer
import pytest
import sgl_kernel
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_batches import i32
from test_fake_hostile import spoil

Arguments = dict[str, Any]


def states(parts: int | None = None) -> Arguments:
    if parts is not None:
        return {"v": torch.randn(3, parts, 2, 8), "s": torch.randn(3, parts, 2)}
    return {
        name: torch.randn(3, 2, 8) if name[0] == "v" else torch.randn(3, 2)
        for name in ("v_a", "s_a", "v_b", "s_b")
    }


def heads(**more: Any) -> Arguments:
    return {"q": torch.randn(3, 2, 64), "k": torch.randn(3, 1, 64), **more}


def cached() -> Arguments:
    flat = {"query": torch.randn(3, 128), "key": torch.randn(3, 64)}
    return {**flat, "positions": i32([0, 1, 3]), "cos_sin_cache": torch.rand(4, 64), "head_size": 64}


def probs(**more: Any) -> Arguments:
    return {"probs": torch.softmax(torch.randn(3, 7), -1), **more}


def logits(**more: Any) -> Arguments:
    return {"logits": torch.randn(3, 7), **more}


def appended() -> Arguments:
    return {
        "append_key": torch.ones(3, 2, 8),
        "append_value": torch.ones(3, 2, 8),
        "batch_indices": i32([0, 0, 1]),
        "positions": i32([3, 4, 2]),
        "paged_kv_cache": torch.zeros(6, 2, 4, 2, 8),
        "kv_indices": i32([2, 0, 5]),
        "kv_indptr": i32([0, 2, 3]),
        "kv_last_page_len": i32([1, 3]),
    }


def aligned() -> Arguments:
    return {
        "topk_ids": i32([0, 1, 2, 1]).view(2, 2),
        "num_experts": 4,
        "block_size": 4,
        "sorted_token_ids": i32([0] * 16),
        "experts_ids": i32([0] * 4),
        "num_tokens_post_pad": i32([0]),
        "cumsum_buffer": i32([0] * 5),
    }


def choices() -> Arguments:
    return {"indices": torch.tensor([0, 2, 1, 1]), "seed": torch.tensor([1]), "offset": torch.tensor([0])}


WIDTH = {"input": torch.randn(3, 8), "weight": torch.randn(8)}
CALLS: dict[str, tuple[Callable[..., Any], Callable[[], Arguments]]] = {
    "rmsnorm": (flashinfer.rmsnorm, lambda: {**WIDTH, "out": torch.empty(3, 8)}),
    "fused_add_rmsnorm": (flashinfer.fused_add_rmsnorm, lambda: {**WIDTH, "residual": torch.randn(3, 8)}),
    "layernorm": (
        flashinfer.layernorm,
        lambda: {"input": torch.randn(3, 8), "gemma": torch.randn(8), "beta": torch.randn(8)},
    ),
    "silu_and_mul": (
        flashinfer.silu_and_mul,
        lambda: {"input": torch.randn(3, 16), "out": torch.empty(3, 8)},
    ),
    "gelu_and_mul": (sgl_kernel.gelu_and_mul, lambda: {"input": torch.randn(3, 16)}),
    "merge_state": (flashinfer.merge_state, states),
    "merge_states": (flashinfer.merge_states, lambda: states(4)),
    "merge_state_in_place": (
        lambda v_a, s_a, v_b, s_b, mask: flashinfer.merge_state_in_place(v_a, s_a, v_b, s_b, mask),
        lambda: {**states(), "mask": torch.tensor([True, False, True])},
    ),
    "merge_state_v2": (sgl_kernel.merge_state_v2, states),
    "apply_rope": (
        flashinfer.apply_rope,
        lambda: heads(indptr=i32([0, 2, 3]), offsets=i32([4, 0]), rotary_dim=32),
    ),
    "apply_rope_pos_ids_inplace": (
        flashinfer.apply_rope_pos_ids_inplace,
        lambda: heads(pos_ids=i32([0, 7, 3])),
    ),
    "cos_sin_cache": (flashinfer.apply_rope_with_cos_sin_cache, cached),
    "softmax": (flashinfer.softmax, lambda: logits(temperature=torch.tensor([0.5, 1.0, 2.0]))),
    "sampling_from_logits": (flashinfer.sampling_from_logits, lambda: logits(**choices())),
    "sampling_from_probs": (flashinfer.sampling_from_probs, lambda: probs(**choices())),
    "top_k": (flashinfer.top_k_sampling_from_probs, lambda: probs(top_k=i32([1, 2, 9]), **choices())),
    "top_p": (
        flashinfer.top_p_sampling_from_probs,
        lambda: probs(top_p=torch.tensor([0.1, 0.5, 1.0]), return_valid=True),
    ),
    "min_p": (flashinfer.min_p_sampling_from_probs, lambda: probs(min_p=torch.tensor([0.1, 0.5, 1.0]))),
    "both filters": (
        flashinfer.top_k_top_p_sampling_from_probs,
        lambda: probs(top_k=i32([1, 2, 9]), top_p=torch.tensor([0.1, 0.5, 1.0]), **choices()),
    ),
    "both filters of logits": (
        flashinfer.top_k_top_p_sampling_from_logits,
        lambda: logits(top_k=i32([1, 2, 9]), top_p=torch.tensor([0.1, 0.5, 1.0])),
    ),
    "top_k_renorm": (flashinfer.top_k_renorm_probs, lambda: probs(top_k=i32([1, 2, 9]))),
    "top_p_renorm": (flashinfer.top_p_renorm_probs, lambda: probs(top_p=torch.tensor([0.1, 0.5, 1.0]))),
    "top_k_mask": (flashinfer.top_k_mask_logits, lambda: logits(top_k=i32([1, 2, 9]))),
    "append": (flashinfer.append_paged_kv_cache, appended),
    "batch_indices": (
        flashinfer.get_batch_indices_positions,
        lambda: {
            "append_indptr": i32([0, 2, 3]),
            "seq_lens": i32([5, 3]),
            "nnz": 4,
            "batch_indices": i32([0] * 4),
            "positions": i32([0] * 4),
        },
    ),
    "seq_lens": (
        flashinfer.get_seq_lens,
        lambda: {"kv_indptr": i32([0, 2, 3]), "kv_last_page_len": i32([1, 3]), "page_size": 4},
    ),
    "topk_softmax": (
        sgl_kernel.topk_softmax,
        lambda: {
            "topk_weights": torch.empty(3, 2),
            "topk_ids": i32([0] * 6).view(3, 2),
            "gating_output": torch.randn(3, 4),
            "correction_bias": torch.randn(4),
        },
    ),
    "moe_align": (sgl_kernel.moe_align_block_size, aligned),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_unspoilt_call_is_answered(name: str) -> None:
    function, arguments = CALLS[name]
    function(**arguments())


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), which=st.sampled_from(["strict", "faithful"]))
def test_anything_is_answered(name: str, seed: int, which: str) -> None:
    rng = random.Random(seed)
    function, arguments = CALLS[name]
    given_now = arguments()
    tensors = sorted(key for key, value in given_now.items() if isinstance(value, torch.Tensor))
    for key in rng.sample(tensors, min(len(tensors), rng.randint(1, 2))):
        given_now[key] = spoil(given_now[key], rng)
    mode.new_context()
    with mode.use(which):
        try:
            function(**given_now)
        except KernelError as refusal:
            refusal.text("zh")
        except (RuntimeError, ValueError, AttributeError, TypeError, AssertionError, LookupError):
            if which == "strict":
                raise
