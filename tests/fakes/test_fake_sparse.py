"""Block sparse masks: what strict mode refuses, which kernel a plan takes, and that equal and variable blocks agree."""

from __future__ import annotations

from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from paged_batches import i32

SPACE = torch.empty(1 << 20, dtype=torch.uint8)
M, N, R, C = 14, 12, 4, 3
HALF = torch.float16


def numbers(seed: int = 0, dtype: torch.dtype = HALF) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(M, 4, 64, generator=generator).to(dtype)
    k, v = (torch.randn(N, 2, 64, generator=generator).to(dtype) for _ in range(2))
    return q, k, v


Q, K, V = numbers()
GIVEN: dict[str, Any] = {
    "indptr": i32([0, 2, 2, 3, 5]),
    "indices": i32([0, 2, 3, 1, 2]),
    "M": M,
    "N": N,
    "R": R,
    "C": C,
    "num_qo_heads": 4,
    "num_kv_heads": 2,
    "head_dim": 64,
}


def planned(**changes: Any) -> Any:
    wrapper = flashinfer.BlockSparseAttentionWrapper(SPACE)
    wrapper.plan(**{**GIVEN, **changes})
    return wrapper


def refused(call: Any) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    return caught.value


MISTAKES: dict[str, tuple[str, dict[str, Any]]] = {
    "block_rows_count": ("indptr", {"indptr": i32([0, 2, 2, 5])}),
    "block_indptr": ("indptr", {"indptr": i32([0, 2, 1, 3, 5])}),
    "block_out_of_range": ("indices", {"indices": i32([0, 2, 4, 1, 2])}),
    "block_columns": ("C", {"C": 5}),
    "block_rows_too_small": ("R", {"R": 2, "num_kv_heads": 4, "indptr": i32([0, 2, 2, 3, 5, 5, 5, 5])}),
    "block_o_data_type": ("o_data_type", {"q_data_type": torch.bfloat16}),
    "block_mask_shape": ("mask", {"mask": torch.ones(5, 3, 4, dtype=torch.bool)}),
    "kv_indptr_not_int32": ("indices", {"indices": i32([0, 2, 3, 1, 2]).long()}),
    "not_one_dimensional": ("indptr", {"indptr": [0, 2, 2, 3, 5]}),
    "heads_not_divisible": ("num_qo_heads", {"num_kv_heads": 3}),
}


@pytest.mark.parametrize("code", MISTAKES)
def test_mistakes_of_a_plan(code: str) -> None:
    argument, changes = MISTAKES[code]
    error = refused(lambda: planned(**changes))
    assert (error.code, error.argument) == (code, argument)


def test_only_far_blocks_are_noticed_by_the_library() -> None:
    for block, noticed in ((4, False), (5, True), (-1, False)):
        changes = {"indices": i32([0, 2, block, 1, 2])}
        error = refused(lambda c=changes: planned(**c))
        assert ("raises ValueError: indices out of bound" in str(error)) == noticed
        with mode.use("faithful"):
            if noticed:
                with pytest.raises(ValueError, match="indices out of bound"):
                    planned(**changes)
            else:
                assert planned(**changes).run(Q, K, V).isfinite().all()


def test_mistakes_of_a_run() -> None:
    for argument, call in {
        "q": lambda w: w.run(Q[:-1], K, V),
        "k": lambda w: w.run(Q, K[:-3], V),
        "v": lambda w: w.run(Q, K, V.transpose(0, 1)),
    }.items():
        error = refused(lambda c=call: c(planned()))
        assert (error.code, error.argument) == ("block_q_shape", argument)
    assert refused(lambda: planned().run(Q.float(), K, V)).code == "q_dtype"
    with pytest.raises(AttributeError, match="_cached_q_data_type"):
        flashinfer.BlockSparseAttentionWrapper(SPACE).run(Q, K, V)


def test_options_of_other_backends() -> None:
    for name, value in (("kv_splits", 2), ("use_clc", True), ("block_mask", torch.ones(4, 4, 4))):
        with pytest.raises(ValueError, match="only supported for"):
            planned(**{name: value})
    with pytest.raises(ValueError, match="indptr and indices are required"):
        planned(indptr=None)
    assert (
        refused(lambda: flashinfer.BlockSparseAttentionWrapper(SPACE, backend="cake")).argument == "backend"
    )
    assert refused(lambda: planned(kv_block_lens=i32([3]))).argument == "kv_block_lens"


def test_which_kernel_a_plan_takes() -> None:
    rows = {"R": 1, "indptr": i32([0, 2, 2, 3, 5, *[5] * 10])}
    assert planned(**rows)._path() == "dec"
    assert planned()._path() == "fa3"
    mask = torch.ones(5, R, C, dtype=torch.bool)
    wrapper = planned(mask=mask)
    assert wrapper._path() == "fa2"
    torch.testing.assert_close(wrapper.run(Q, K, V), planned().run(Q, K, V), atol=2e-3, rtol=1e-3)


def test_causal_counts_in_what_is_gathered() -> None:
    """The trap of the wrapper: rows are the last of their gathered KV, wherever the blocks lie."""
    out = planned(causal=True).run(Q, K, V)
    first = torch.cat([K[0:3], K[6:9]]), torch.cat([V[0:3], V[6:9]])
    want = flashinfer.single_prefill_with_kv_cache(Q[:4], *first, causal=True)
    assert torch.equal(out[:4], want)
    assert not out[4:8].any()


def test_forward_brings_its_own_options() -> None:
    wrapper = planned(sm_scale=0.5, logits_soft_cap=2.0)
    assert torch.equal(wrapper.forward(Q, K, V), planned().run(Q, K, V))


def variable(**changes: Any) -> Any:
    blocks = torch.zeros(2, 4, 4, dtype=torch.bool)
    for row, (first, last) in enumerate(zip(GIVEN["indptr"], GIVEN["indptr"][1:], strict=False)):
        blocks[:, row, GIVEN["indices"][first:last].long()] = True
    wrapper = flashinfer.VariableBlockSparseAttentionWrapper(SPACE)
    sizes = {"block_row_sz": i32([4, 4, 4, 2] * 2).view(2, 4), "block_col_sz": i32([3] * 8).view(2, 4)}
    heads = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 64}
    wrapper.plan(**{"block_mask_map": blocks, **sizes, **heads, **changes})
    return wrapper


def heads_first(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [tensor.transpose(0, 1).contiguous() for tensor in tensors]


def test_equal_blocks_are_variable_ones_too() -> None:
    out, lse = variable().run(*heads_first(Q, K, V), return_lse=True)
    want, want_lse = planned().run(Q, K, V, return_lse=True)
    torch.testing.assert_close(out.transpose(0, 1), want)
    torch.testing.assert_close(lse.transpose(0, 1), want_lse)


def test_out_of_variable_blocks_is_as_the_kernel_writes_it() -> None:
    wrapper = variable()
    given = heads_first(Q, K, V)
    into, lse = torch.empty(2 * M, 2, 64, dtype=HALF), torch.empty(2 * M, 2)
    out, told = wrapper.run(*given, out=into, lse=lse, return_lse=True)
    assert torch.equal(out.view(2, 2, M, 64).transpose(1, 2).reshape(into.shape), into)
    assert torch.equal(told.view(2, 2, M).transpose(1, 2).reshape(lse.shape), lse)
    with pytest.raises(ValueError, match="Invalid shape of out"):
        wrapper.run(*given, out=torch.empty_like(given[0]))


def test_mistakes_of_variable_blocks() -> None:
    rows = i32([4, 4, 4, 2] * 2).view(2, 4)
    uneven = rows.clone()
    uneven[1, 3] = 3
    negative = rows.clone()
    negative[0, :2] = i32([-1, 9])
    for code, changes in (
        ("variable_block_shapes", {"block_mask_map": torch.ones(1, 4, 4, dtype=torch.bool)}),
        ("variable_block_shapes", {"block_row_sz": rows[:, :3]}),
        ("variable_block_sizes", {"block_row_sz": uneven}),
        ("variable_block_sizes", {"block_row_sz": negative}),
        ("not_modelled", {"block_mask_map": torch.zeros(2, 4, 4, dtype=torch.bool)}),
        ("not_modelled", {"pos_encoding_mode": "ALIBI"}),
    ):
        assert refused(lambda c=changes: variable(**c)).code == code
    assert refused(lambda: variable().run(Q, K, V)).code == "block_q_shape"
    with pytest.raises(AssertionError, match="multiple of num_kv_heads"):
        variable(num_qo_heads=5)
