"""Single values of a call: what is no number, no tensor or no memory of its own is named, on every operator; what an engine
rightly does with slices and views is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flashinfer
import numpy as np
import pytest
import sgl_kernel
import torch
from fake_kernels import mode
from fake_kernels.checks_values import overlap
from fake_kernels.errors import KernelError
from paged_batches import (
    PATHS,
    PREFILL_PATHS,
    PagedBatch,
    i32,
    make_batch,
    plan,
    plan_and_run,
    table_of,
    wrapper_for,
)
from sgl_kernel.flash_attn import flash_attn_varlen_func, flash_attn_with_kvcache

BATCH = make_batch((20, 33), (3, 2))
ROWS = torch.randn(6, 64).half()
WEIGHT = torch.ones(64).half()
Q, K = torch.randn(6, 8, 64).half(), torch.randn(6, 2, 64).half()
POSITIONS = i32(range(6))


def refused(call: Callable[[], Any]) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    for lang in ("zh", "en"):
        assert "{" not in caught.value.what[lang] + caught.value.fix[lang]
    return caught.value


def space() -> torch.Tensor:
    return torch.empty(1 << 16, dtype=torch.uint8)


def plan_decode(**options: Any) -> Any:
    arrays = {"indptr": BATCH.indptr, "indices": BATCH.indices, "last_page_len": BATCH.last}
    sizes = {"num_qo_heads": 8, "num_kv_heads": 2, "head_dim": 64, "page_size": 16}
    wrapper = wrapper_for("dec")
    wrapper.plan(**{**arrays, **sizes, **options})
    return wrapper


def plan_fast(**options: Any) -> None:
    wrapper = plan_decode()
    wrapper.run(BATCH.q[:2], (BATCH.k, BATCH.v))
    sizes = {"num_qo_heads": 8, "num_kv_heads": 2, "head_dim": 64, "page_size": 16, **options}
    flashinfer.fast_decode_plan(wrapper, BATCH.indptr, BATCH.indices, BATCH.last, **sizes)


def plan_prefill(**options: Any) -> None:
    sizes = {"num_qo_heads": 8, "num_kv_heads": 2, "head_dim_qk": 64, "page_size": 16, **options}
    wrapper_for("fa2").plan(BATCH.qo_indptr, BATCH.indptr, BATCH.indices, BATCH.last, **sizes)


def plan_ragged(**options: Any) -> None:
    sizes = {"num_qo_heads": 8, "num_kv_heads": 2, "head_dim_qk": 64, **options}
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(space(), backend="fa2")
    wrapper.plan(i32([0, 3, 6]), i32([0, 3, 6]), **sizes)


def plan_cascade(**options: Any) -> None:
    sizes = {"num_qo_heads": 8, "num_kv_heads": 2, "head_dim": 64, "page_size": 16, **options}
    arrays = (BATCH.qo_indptr, BATCH.indptr, BATCH.indices, BATCH.last)
    flashinfer.MultiLevelCascadeAttentionWrapper(1, space()).plan(*([array] for array in arrays), **sizes)


def plan_blocks(**options: Any) -> None:
    sizes = {"M": 8, "N": 8, "R": 4, "C": 4, "num_qo_heads": 4, "num_kv_heads": 4, "head_dim": 64}
    wrapper = flashinfer.BlockSparseAttentionWrapper(space())
    wrapper.plan(i32([0, 1, 2]), i32([1, 0]), **{**sizes, **options})


def plan_variable(**options: Any) -> None:
    sizes = {"num_qo_heads": 4, "num_kv_heads": 1, "head_dim": 64, **options}
    wrapper = flashinfer.VariableBlockSparseAttentionWrapper(space())
    wrapper.plan(torch.ones(1, 1, 1, dtype=torch.bool), i32([8]).view(1, 1), i32([8]).view(1, 1), **sizes)


def plan_persistent(**options: Any) -> None:
    sizes = {"num_qo_heads": 8, "num_kv_heads": 2, "head_dim_qk": 64, "head_dim_vo": 64, "page_size": 16}
    wrapper = flashinfer.BatchAttention(device="cpu")
    wrapper.plan(BATCH.qo_indptr, BATCH.indptr, BATCH.indices, i32(BATCH.kv_lens), **{**sizes, **options})


def flash(**options: Any) -> Any:
    given = {
        "q": BATCH.q,
        "k_cache": BATCH.k,
        "v_cache": BATCH.v,
        "page_table": table_of(BATCH),
        "cache_seqlens": i32(BATCH.kv_lens),
        "cu_seqlens_q": BATCH.qo_indptr,
        "max_seqlen_q": 3,
    }
    return flash_attn_with_kvcache(**{**given, **options})


def varlen(**options: Any) -> Any:
    sums = i32([0, 6])
    given = {"q": Q, "k": K, "v": K, "cu_seqlens_q": sums, "cu_seqlens_k": sums}
    return flash_attn_varlen_func(**{**given, "max_seqlen_q": 6, "max_seqlen_k": 6, **options})


def by_cache(**options: Any) -> Any:
    given = {"query": Q.flatten(1), "key": K.flatten(1), "head_size": 64, "cos_sin_cache": torch.randn(9, 64)}
    return flashinfer.apply_rope_with_cos_sin_cache(POSITIONS, **{**given, **options})


def single_decode(**options: Any) -> Any:
    return flashinfer.single_decode_with_kv_cache(**{"q": Q[0], "k": K, "v": K, **options})


def single_prefill(**options: Any) -> Any:
    return flashinfer.single_prefill_with_kv_cache(**{"q": Q, "k": K, "v": K, "backend": "fa2", **options})


def align(**options: Any) -> None:
    buffers = [torch.empty(n, dtype=torch.int32) for n in (99, 99, 1, 10)]
    sizes = {"num_experts": 9, "block_size": 4, **options}
    sgl_kernel.moe_align_block_size(
        torch.zeros(3, 2, dtype=torch.int32), sizes["num_experts"], sizes["block_size"], *buffers
    )


HEADS = ["num_qo_heads", "num_kv_heads"]
SCORING = ["sm_scale", "logits_soft_cap"]
OPERATORS: dict[str, tuple[Callable[..., Any], list[str], list[str]]] = {
    "decode": (plan_decode, [*HEADS, "head_dim", "page_size", "window_left"], [*SCORING, "rope_scale"]),
    "fast": (plan_fast, [*HEADS, "head_dim", "page_size", "window_left"], SCORING),
    "prefill": (plan_prefill, [*HEADS, "head_dim_qk", "head_dim_vo", "page_size", "window_left"], SCORING),
    "ragged": (plan_ragged, [*HEADS, "head_dim_qk", "window_left"], SCORING),
    "cascade": (plan_cascade, [*HEADS, "head_dim", "page_size", "window_left"], SCORING),
    "blocks": (plan_blocks, [*HEADS, "head_dim", "M", "N", "R", "C"], SCORING),
    "variable": (plan_variable, [*HEADS, "head_dim"], SCORING),
    "persistent": (plan_persistent, [*HEADS, "head_dim_qk", "head_dim_vo", "page_size"], SCORING),
    "single_decode": (single_decode, ["window_left"], SCORING),
    "single_prefill": (single_prefill, ["window_left"], SCORING),
    "flash": (flash, ["max_seqlen_q"], ["softcap", "softmax_scale"]),
    "varlen": (varlen, ["max_seqlen_q", "max_seqlen_k"], ["softcap", "softmax_scale"]),
    "rope": (
        lambda **o: flashinfer.apply_rope_pos_ids(Q, K, POSITIONS, **o),
        ["rotary_dim"],
        ["rope_scale", "rope_theta"],
    ),
    "llama31": (
        lambda **o: flashinfer.apply_llama31_rope(Q, K, i32([0, 6]), i32([0]), **o),
        ["rotary_dim", "old_context_len"],
        ["rope_theta", "low_freq_factor", "high_freq_factor"],
    ),
    "rope_cache": (by_cache, ["head_size"], []),
    "rmsnorm": (lambda **o: flashinfer.rmsnorm(ROWS, WEIGHT, **o), [], ["eps"]),
    "fused": (
        lambda **o: flashinfer.fused_add_rmsnorm(ROWS.clone(), ROWS.clone(), WEIGHT, **o),
        [],
        ["eps"],
    ),
    "sgl_rmsnorm": (lambda **o: sgl_kernel.rmsnorm(ROWS, WEIGHT, **o), [], ["eps"]),
    "align": (align, ["num_experts", "block_size"], []),
    "positions": (
        lambda **o: flashinfer.get_batch_indices_positions(i32([0, 2]), i32([5]), **{"nnz": 2, **o}),
        ["nnz"],
        [],
    ),
    "lengths": (
        lambda **o: flashinfer.get_seq_lens(BATCH.indptr, BATCH.last, **{"page_size": 16, **o}),
        ["page_size"],
        [],
    ),
}
WHOLE = [
    pytest.param(op, name, id=f"{op}-{name}") for op, (_, names, _) in OPERATORS.items() for name in names
]
REAL = [
    pytest.param(op, name, id=f"{op}-{name}") for op, (_, _, names) in OPERATORS.items() for name in names
]


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_is_right_is_taken(operator: str) -> None:
    OPERATORS[operator][0]()


@pytest.mark.parametrize("wrong", [4.0, "4", torch.tensor(4), [4], True], ids=repr)
@pytest.mark.parametrize(("operator", "name"), WHOLE)
def test_sizes_are_whole_numbers(operator: str, name: str, wrong: object) -> None:
    error = refused(lambda: OPERATORS[operator][0](**{name: wrong}))
    assert (error.code, error.argument) == ("number_type", name)
    assert type(wrong).__name__ in error.what["zh"]


@pytest.mark.parametrize("wrong", ["0.5", torch.tensor(0.5), (0.5,)], ids=repr)
@pytest.mark.parametrize(("operator", "name"), REAL)
def test_scales_are_numbers(operator: str, name: str, wrong: object) -> None:
    error = refused(lambda: OPERATORS[operator][0](**{name: wrong}))
    assert (error.code, error.argument) == ("number_type", name)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize(("operator", "name"), REAL)
def test_scales_are_finite(operator: str, name: str, wrong: float) -> None:
    error = refused(lambda: OPERATORS[operator][0](**{name: wrong}))
    assert (error.code, error.argument) == ("number_out_of_range", name)


PROBS = torch.softmax(torch.randn(2, 5), -1)
FLAGS: list[tuple[Callable[..., Any], str]] = [
    (plan_decode, "non_blocking"),
    (plan_decode, "disable_split_kv"),
    (plan_fast, "non_blocking"),
    (plan_prefill, "causal"),
    (plan_ragged, "causal"),
    (plan_cascade, "causal"),
    (plan_blocks, "causal"),
    (plan_variable, "causal"),
    (plan_persistent, "causal"),
    (single_decode, "use_tensor_cores"),
    (single_decode, "return_lse"),
    (single_prefill, "causal"),
    (flash, "causal"),
    (flash, "return_softmax_lse"),
    (varlen, "causal"),
    (by_cache, "is_neox"),
    (OPERATORS["rope"][0], "interleave"),
    (lambda **o: flashinfer.sampling.sampling_from_probs(PROBS, **o), "check_nan"),
    (lambda **o: flashinfer.sampling.sampling_from_probs(PROBS, **o), "return_valid"),
    (lambda **o: flashinfer.sampling.sampling_from_logits(PROBS, **o), "check_nan"),
    (lambda **o: flashinfer.BatchDecodeWithPagedKVCacheWrapper(space(), **o), "use_tensor_cores"),
    (lambda **o: plan_decode().run(BATCH.q[:2], (BATCH.k, BATCH.v), **o), "return_lse"),
]


@pytest.mark.parametrize("wrong", ["False", torch.tensor(True), 0.5], ids=repr)
@pytest.mark.parametrize(("call", "name"), FLAGS)
def test_flags_are_true_or_false(call: Callable[..., Any], name: str, wrong: object) -> None:
    error = refused(lambda: call(**{name: wrong}))
    assert (error.code, error.argument) == ("number_type", name)
    call(**{name: False})


def test_what_may_be_left_out_elsewhere() -> None:
    assert refused(lambda: plan_persistent(head_dim_vo=None)).argument == "head_dim_vo"
    assert refused(lambda: OPERATORS["rope"][0](rope_scale=None)).argument == "rope_scale"
    plan_prefill(head_dim_vo=None)
    plan_decode(rope_scale=None)


def test_a_negative_cap_is_none() -> None:
    """The library caps when it is above 0; plan_info and fast plans go by that too."""
    plain, negative = plan_decode(), plan_decode(logits_soft_cap=-1.0)
    assert negative.plan_info == plain.plan_info
    cache = (BATCH.k, BATCH.v)
    assert torch.equal(negative.run(BATCH.q[:2], cache), plain.run(BATCH.q[:2], cache))
    plan_fast(logits_soft_cap=-1.0)


@pytest.mark.parametrize("name", ["rope_scale", "rope_theta"])
def test_frequencies_are_positive(name: str) -> None:
    for call in (plan_decode, OPERATORS["rope"][0]):
        assert refused(lambda c=call: c(**{name: 0.0})).code == "number_out_of_range"


def test_numbers_of_numpy_are_numbers() -> None:
    sizes = {"num_qo_heads": np.int64(8), "num_kv_heads": np.int32(2), "head_dim": np.int64(64)}
    plan_decode(**sizes, sm_scale=np.float32(0.1))


@pytest.mark.parametrize("how", ["forward", "forward_return_lse"])
def test_the_deprecated_forward_takes_numbers_too(how: str) -> None:
    wrapper = plan_decode()
    call = getattr(wrapper, how)
    error = refused(lambda: call(BATCH.q[:2], (BATCH.k, BATCH.v), sm_scale="0.1"))
    assert error.argument == "sm_scale"


@pytest.mark.parametrize("name", ["q_data_type", "kv_data_type", "o_data_type"])
def test_the_name_of_a_type(name: str) -> None:
    error = refused(lambda: plan_decode(**{name: "bf16"}))
    assert isinstance(error, AttributeError)
    assert "module 'torch' has no attribute 'bf16'" in str(error)
    assert "bfloat16" in error.fix["zh"]
    assert isinstance(refused(lambda: plan_decode(**{name: 16})), TypeError)


@pytest.mark.parametrize("wrong", [None, [1.0], 3])
@pytest.mark.parametrize("path", PATHS)
def test_q_is_a_tensor(path: str, wrong: object) -> None:
    batch = BATCH if path in PREFILL_PATHS else make_batch((20, 33))
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    error = refused(lambda: wrapper.run(wrong, (batch.k, batch.v)))
    assert (error.code, error.argument) == ("not_a_tensor", "q")
    assert isinstance(error, AttributeError)


@pytest.mark.parametrize("shape", [(), (1536,), (2, 512), (1, 2, 8, 64)])
@pytest.mark.parametrize("path", PATHS)
def test_q_has_rows_heads_and_dimensions(path: str, shape: tuple[int, ...]) -> None:
    batch = make_batch((20, 33), (1, 1))
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    assert refused(lambda: wrapper.run(torch.zeros(shape).half(), (batch.k, batch.v))).code == "q_shape"


CALLS_WITH_TENSORS: list[tuple[Callable[..., Any], str]] = [
    *((single_decode, name) for name in ("q", "k", "v")),
    *((single_prefill, name) for name in ("q", "k", "v")),
    *((flash, name) for name in ("q", "k_cache", "v_cache")),
    *((varlen, name) for name in ("q", "k", "v")),
]


@pytest.mark.parametrize(("call", "name"), CALLS_WITH_TENSORS)
def test_what_attention_reads_are_tensors(call: Callable[..., Any], name: str) -> None:
    error = refused(lambda: call(**{name: [1.0]}))
    assert (error.code, error.argument) == ("not_a_tensor", name)


def test_k_and_v_without_pages_are_tensors() -> None:
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(space(), backend="fa2")
    wrapper.plan(i32([0, 6]), i32([0, 6]), 8, 2, 64)
    assert refused(lambda: wrapper.run(Q, None, K)).argument == "k"
    sparse = flashinfer.BlockSparseAttentionWrapper(space())
    sparse.plan(i32([0, 1]), i32([0]), 6, 6, 6, 6, 8, 2, 64)
    assert refused(lambda: sparse.run(Q, K, [1])).argument == "v"
    persistent = flashinfer.BatchAttention(device="cpu")
    persistent.plan(
        BATCH.qo_indptr, BATCH.indptr, BATCH.indices, i32(BATCH.kv_lens), 8, 2, 64, 64, 16, False,
        q_data_type=torch.float16, kv_data_type=torch.float16,
    )  # fmt: skip
    cache = (BATCH.k, BATCH.v)
    assert refused(lambda: persistent.run([1], cache)).argument == "q"
    assert refused(lambda: persistent.run(BATCH.q, cache, out=[1])).argument == "out"
    apart = torch.empty(5, 64, 8).half().transpose(1, 2)
    assert refused(lambda: persistent.run(BATCH.q, cache, out=apart)).code == "out_not_contiguous"


@pytest.mark.parametrize("wrong", [4, None, (4,), (4.0, 0), "40"])
def test_a_window_of_flash_attention_is_two_numbers(wrong: object) -> None:
    for call in (flash, varlen):
        assert refused(lambda c=call: c(window_size=wrong)).code == "not_a_pair"
        call(window_size=[4, 0])


def test_a_cache_in_pages_needs_a_page_table() -> None:
    error = refused(lambda: flash(page_table=None))
    assert (error.code, error.argument) == ("page_table_missing", "page_table")
    assert "batch_size must be equal to batch_size_k" in str(error)


@pytest.mark.parametrize("wrong", [None, 128 << 20])
def test_a_workspace_is_a_tensor(wrong: object) -> None:
    for make in (
        lambda: flashinfer.BatchDecodeWithPagedKVCacheWrapper(wrong),
        lambda: flashinfer.BatchPrefillWithPagedKVCacheWrapper(wrong),
        lambda: flashinfer.MultiLevelCascadeAttentionWrapper(2, wrong),
        lambda: plan_decode().reset_workspace_buffer(wrong, space()),
    ):
        error = refused(make)
        assert error.code == "not_a_tensor"
        assert isinstance(error, AttributeError)
        with mode.use("faithful"), pytest.raises(AttributeError, match="has no attribute 'data_ptr'"):
            make()


def test_a_workspace_has_one_dimension() -> None:
    """The library counts its bytes by the first one."""
    error = refused(lambda: flashinfer.BatchDecodeWithPagedKVCacheWrapper(space().view(64, -1)))
    assert error.code == "workspace_form"
    flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1 << 14))  # any type: entries times their bytes


@pytest.mark.parametrize("path", PATHS)
def test_results_go_where_memory_is_dense(path: str) -> None:
    batch = BATCH if path in PREFILL_PATHS else make_batch((20, 33))
    rows = len(batch.q)
    apart = torch.empty(rows, 64, 8).half().transpose(1, 2)
    assert refused(lambda: plan_and_run(path, batch, out=apart)).code == "out_not_contiguous"
    half = torch.empty(rows, 16, 64).half()[:, :8]
    if path == "fa3":  # of out alone, and but for the last dimension, it takes any strides
        plan_and_run(path, batch, out=half)
    else:
        assert refused(lambda: plan_and_run(path, batch, out=half)).code == "out_not_contiguous"
    strided = torch.empty(8, rows).t()
    error = refused(lambda: plan_and_run(path, batch, lse=strided, return_lse=True))
    assert (error.code, error.argument) == ("out_not_contiguous", "lse")
    wide = torch.empty(rows + 3, 8, 64).half()
    out = plan_and_run(path, batch, out=wide[1 : rows + 1])
    assert torch.equal(out, plan_and_run(path, batch))
    error = refused(lambda: plan_and_run(path, batch, out=[1]))
    assert (error.code, error.argument) == ("not_a_tensor", "out")


def vector(size: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.zeros(size, dtype=dtype)


WRONG_FORMS: dict[str, Callable[[int], torch.Tensor]] = {
    "int64": lambda n: vector(n, torch.int64),
    "float32": lambda n: vector(n, torch.float32),
    "a column": lambda n: torch.zeros(n, 2, dtype=torch.int32)[:, 0],
    "two dimensions": lambda n: vector(n).view(n, 1),
}
GRAPH_WRAPPERS: dict[str, tuple[Callable[..., Any], dict[str, int]]] = {
    "decode": (
        flashinfer.BatchDecodeWithPagedKVCacheWrapper,
        {"paged_kv_indptr_buffer": 3, "paged_kv_indices_buffer": 9, "paged_kv_last_page_len_buffer": 2},
    ),
    "prefill": (
        flashinfer.BatchPrefillWithPagedKVCacheWrapper,
        {
            "qo_indptr_buf": 3,
            "paged_kv_indptr_buf": 3,
            "paged_kv_indices_buf": 9,
            "paged_kv_last_page_len_buf": 2,
            "mask_indptr_buf": 3,
        },
    ),
    "ragged": (
        flashinfer.BatchPrefillWithRaggedKVCacheWrapper,
        {"qo_indptr_buf": 3, "kv_indptr_buf": 3, "mask_indptr_buf": 3},
    ),
}
BUFFERS = [
    pytest.param(kind, name, id=f"{kind}-{name}") for kind, (_, of) in GRAPH_WRAPPERS.items() for name in of
]


def graph_wrapper(kind: str, **instead: torch.Tensor) -> Any:
    make, sizes = GRAPH_WRAPPERS[kind]
    buffers = {name: vector(size) for name, size in sizes.items()}
    return make(space(), use_cuda_graph=True, **{**buffers, **instead})


@pytest.mark.parametrize("form", WRONG_FORMS)
@pytest.mark.parametrize(("kind", "name"), BUFFERS)
def test_graph_buffers_are_what_kernels_read(kind: str, name: str, form: str) -> None:
    """plan copies into anything; kernels read int32 where it lies."""
    graph_wrapper(kind)
    wrong = WRONG_FORMS[form](GRAPH_WRAPPERS[kind][1][name])
    error = refused(lambda: graph_wrapper(kind, **{name: wrong}))
    assert (error.code, error.argument) == ("graph_buffer_form", name)
    if (kind, form) == ("decode", "int64"):
        return  # measured: see test_fake_measured_calls
    with mode.use("faithful"):
        assert refused(lambda: graph_wrapper(kind, **{name: wrong})).code == "not_modelled"


def test_a_mask_buffer_holds_bytes() -> None:
    graph_wrapper("prefill", custom_mask_buf=vector(64, torch.uint8))
    error = refused(lambda: graph_wrapper("prefill", custom_mask_buf=vector(64, torch.bool)))
    assert error.code == "graph_buffer_form"
    assert "uint8" in error.fix["zh"]


@pytest.mark.parametrize("kind", GRAPH_WRAPPERS)
def test_graph_buffers_have_memory_of_their_own(kind: str) -> None:
    _, sizes = GRAPH_WRAPPERS[kind]
    (first, a), (second, b) = list(sizes.items())[:2]
    memory = vector(64)
    graph_wrapper(kind, **{first: memory[:a], second: memory[a : a + b]})  # slices side by side are fine
    error = refused(lambda: graph_wrapper(kind, **{first: memory[:a], second: memory[a - 1 : a - 1 + b]}))
    assert (error.code, error.argument) == ("graph_buffers_overlap", second)


def test_the_levels_of_a_cascade_have_buffers_of_their_own() -> None:
    names = ("qo_indptr", "paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len")
    sizes = (3, 3, 9, 2)
    right = {f"{name}_buf_arr": [vector(n), vector(n)] for name, n in zip(names, sizes, strict=True)}
    make = flashinfer.MultiLevelCascadeAttentionWrapper
    make(2, space(), use_cuda_graph=True, **right)
    for name, buffers in right.items():
        twice = {**right, name: [buffers[0]] * 2}
        error = refused(lambda t=twice: make(2, space(), use_cuda_graph=True, **t))
        assert (error.code, error.argument) == ("graph_buffers_overlap", f"{name}[1]")


@pytest.mark.parametrize("levels", [0, 2.0, None])
def test_a_cascade_has_levels(levels: object) -> None:
    error = refused(lambda: flashinfer.MultiLevelCascadeAttentionWrapper(levels, space()))
    assert error.argument == "num_levels"


IN_PLACE: list[Callable[[torch.Tensor, torch.Tensor], None]] = [
    lambda x, y: flashinfer.fused_add_rmsnorm(x, y, WEIGHT),
    lambda x, y: flashinfer.gemma_fused_add_rmsnorm(x, y, WEIGHT),
    lambda x, y: sgl_kernel.fused_add_rmsnorm(x, y, WEIGHT),
    lambda x, y: sgl_kernel.gemma_fused_add_rmsnorm(x, y, WEIGHT),
    lambda x, y: flashinfer.apply_rope_pos_ids_inplace(x.view(6, 1, 64), y.view(6, 1, 64), POSITIONS),
    lambda x, y: flashinfer.apply_rope_with_cos_sin_cache_inplace(POSITIONS, x, y, 64, torch.randn(9, 64)),
]


@pytest.mark.parametrize("call", IN_PLACE)
def test_what_is_written_in_place_are_two_tensors(call: Callable[[torch.Tensor, torch.Tensor], None]) -> None:
    x = ROWS.clone()
    residual = x
    assert refused(lambda: call(x, residual)).code == "same_memory"
    call(x, ROWS.clone())
    joined = torch.randn(6, 128).half()
    call(joined[:, :64], joined[:, 64:])  # columns of one projection


def test_overlap() -> None:
    x = torch.zeros(6, 8)
    assert overlap(x, x[2:])
    assert overlap(x[:, :4], x[:, 3:])
    assert overlap(x[:, 3:], x[:, :4])
    assert overlap(x, x.view(-1)[5:9])
    assert not overlap(x[:, :4], x[:, 4:])
    assert not overlap(x[:3], x[3:])
    assert not overlap(x, x.clone())
    assert not overlap(x, x[:0])


def test_a_block_is_listed_once() -> None:
    def planned(indices: list[int]) -> None:
        flashinfer.BlockSparseAttentionWrapper(space()).plan(
            i32([0, 2, 3]), i32(indices), 8, 8, 4, 4, 4, 4, 64
        )

    planned([1, 0, 1])
    error = refused(lambda: planned([1, 1, 0]))
    assert (error.code, error.params["row"], error.params["position"]) == ("block_listed_twice", 0, 1)


def levels_of(batch: PagedBatch, prefix: list[int], groups: list[int]) -> list[list[torch.Tensor]]:
    """The arrays of two levels: pages of a prefix for groups of rows, then the batch's own."""
    upper = (i32(groups), i32([0, *range(1, len(groups))]), i32(prefix), i32([16] * (len(groups) - 1)))
    own = (batch.qo_indptr, batch.indptr, batch.indices, batch.last)
    return [list(pair) for pair in zip(upper, own, strict=True)]


def test_levels_of_a_cascade_list_pages_of_their_own() -> None:
    free = sorted(set(range(len(BATCH.k))) - set(BATCH.indices.tolist()))

    def planned(prefix: list[int], groups: list[int]) -> None:
        wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(2, space())
        wrapper.plan(*levels_of(BATCH, prefix, groups), 8, 2, 64, 16, causal=True)

    planned(free[:1], [0, 5])
    planned(free[:2], [0, 3, 5])
    theirs = int(BATCH.indices[-1])  # of the second request, rows 3 and 4
    planned([theirs, free[0]], [0, 3, 5])  # seen by the first request's rows only
    error = refused(lambda: planned([free[0], theirs], [0, 3, 5]))
    assert (error.code, error.argument) == ("cascade_page_twice", "paged_kv_indices_arr[1]")
    assert (error.params["value"], error.params["row"]) == (theirs, 3)


def test_the_last_level_of_a_causal_cascade_is_the_finest() -> None:
    free = sorted(set(range(len(BATCH.k))) - set(BATCH.indices.tolist()))
    upside_down = [pair[::-1] for pair in levels_of(BATCH, free[:1], [0, 5])]

    def planned(causal: bool) -> None:
        wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(2, space())
        wrapper.plan(*upside_down, 8, 2, 64, 16, causal=causal)

    planned(causal=False)  # then the order of levels is no matter
    assert refused(lambda: planned(causal=True)).code == "cascade_levels_order"


def test_a_generator_is_one() -> None:
    probs = torch.softmax(torch.randn(2, 5), -1)
    assert (
        refused(lambda: flashinfer.sampling.sampling_from_probs(probs, generator=3)).argument == "generator"
    )


def test_an_assertion_without_words_is_told_without_a_colon() -> None:
    wrapper = plan_decode(window_left=3)
    error = refused(lambda: wrapper.run(BATCH.q[:2], (BATCH.k, BATCH.v), window_left=4))
    assert isinstance(error, AssertionError)
    assert "raises AssertionError." in error.real["en"]
    assert "抛出 AssertionError。" in error.real["zh"]


def test_sentences_end_once() -> None:
    """The library's messages bring a full stop, or don't."""
    batch = make_batch((20,))
    prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
        space(),
        use_cuda_graph=True,
        backend="fa2",
        **{name: vector(n) for name, n in GRAPH_WRAPPERS["prefill"][1].items()},
    )
    error = refused(lambda: plan(prefill, batch))
    for text in (error.what["en"], error.what["zh"]):
        assert not text.endswith(("..", ".。"))
