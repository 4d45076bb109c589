"""What a reader of a KernelError gets, options that are refused and never ignored, the modes."""

from __future__ import annotations

import importlib
import json
import pkgutil
import warnings
from string import Formatter
from typing import Any

import fake_kernels
import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError, kernel_error
from fake_kernels.findings import Finding, Mistake, act, require_context, settle
from fake_kernels.outcomes import DIVISION_BY_ZERO, HANGS, MISALIGNED, Outcome
from fake_kernels.outcomes import PATHS as EVERY_PATH
from paged_batches import DECODE_PATHS, PATHS, PREFILL_PATHS, PagedBatch, i32, make_batch, plan, wrapper_for


def caught_from(call: Any) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    return caught.value


def test_the_text_says_what_where_what_a_gpu_does_and_how_to_repair_it() -> None:
    batch = make_batch((20, 33, 48), (1, 1, 1)).but(indptr=i32([2, 5, 8]))
    error = caught_from(lambda: plan(wrapper_for("fa2"), batch))
    assert str(error) == error.text("en")
    what, argument, real, fix = error.text("en").split("\n")
    assert what == "paged_kv_indptr lacks its leading 0: it has 3 entries for 3 requests and starts with 2."
    assert argument == "argument: paged_kv_indptr[0] = 2"
    assert "prefill fa2: raises RuntimeError: The size of tensor a (2) must match" in real
    assert fix.startswith("fix: give 4 entries: 0 first")
    zh = error.text("zh").split("\n")
    assert [line.split("：")[0] for line in zh[1:]] == ["参数", "真实 kernel", "怎么改"]
    assert "少了开头的 0" in zh[0]
    assert json.loads(json.dumps(error.params))["kernel"] == "fa2"


def test_the_account_of_the_real_kernel_compares_the_paths() -> None:
    batch = make_batch((20, 33)).but(last=i32([4, 20]))
    error = caught_from(lambda: plan(wrapper_for("fa3"), batch))
    assert error.real["en"].startswith(
        "prefill fa3: fails with CUDA error: an illegal memory access was encountered"
    )
    others = (
        "CUDA-core decode, tensor-core decode, prefill fa2: accepts it without an error and returns wrong"
    )
    assert others in error.real["en"]
    assert "以 CUDA error: an illegal memory access was encountered 失败" in error.real["zh"]


def test_an_error_is_also_of_the_real_type() -> None:
    text = {"en": "e", "zh": "z"}
    for raised in (ValueError, KeyError, AttributeError, AssertionError, NotImplementedError, RuntimeError):
        error = kernel_error("c", argument="a", params={}, what=text, real=text, fix=text, raised=raised)
        assert isinstance(error, KernelError)
        assert isinstance(error, raised)
        assert str(error).startswith("e\nargument: a")


def catalogue() -> list[Mistake]:
    names = [info.name for info in pkgutil.iter_modules(fake_kernels.__path__)]
    modules = [importlib.import_module(f"fake_kernels.{n}") for n in names if n.startswith("mistakes_")]
    return [value for m in modules for value in vars(m).values() if isinstance(value, Mistake)]


def test_every_mistake_is_worded_in_both_languages() -> None:
    mistakes = catalogue()
    assert len(mistakes) > 50
    for mistake in mistakes:
        assert mistake.code.isidentifier()
        for text in (mistake.what, mistake.fix, mistake.note):
            assert text is None or (set(text) == {"en", "zh"} and all(text.values()))
        assert mistake.what["en"].isascii(), mistake.code
        assert not mistake.what["zh"].isascii(), mistake.code
        assert set(mistake.real) <= set(EVERY_PATH)


def fields(text: str) -> set[str]:
    """What a sentence is filled in with; words that need a translation come twice, name and name_zh."""
    return {name.removesuffix("_zh") for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_tell_the_same_values() -> None:
    for mistake in catalogue():
        for text in (mistake.what, mistake.fix, mistake.note):
            assert text is None or fields(text["en"]) == fields(text["zh"]), mistake.code


ODD_BATCHES = {
    "qo_indptr_no_leading_zero": lambda b: b.but(qo_indptr=i32([-1, 3, 4, 9])),
    "qo_indptr_wrong_count": lambda b: b.but(qo_indptr=i32([0, 3, 4, 8, 9])),
    "qo_indptr_decreasing": lambda b: b.but(qo_indptr=i32([0, 3, 1, 9])),
    "kv_indptr_wrong_count": lambda b: b.but(indptr=i32([0, 2, 5, 8, 8]), seq_lens=i32([20, 33, 48])),
    "kv_indptr_not_from_zero": lambda b: b.but(indptr=i32([1, 2, 5, 8])),
    "last_page_len_negative": lambda b: b.but(last=i32([4, -99, 16])),
    "seq_lens_wrong_count": lambda b: b.but(seq_lens=i32([20, 33, 48, 1])),
    "not_one_dimensional": lambda b: b.but(last=b.last.view(1, 3)),
    "page_size_invalid": lambda b: b.but(page_size=-1),
    "empty_batch": lambda b: b.but(
        qo_indptr=i32([0]), indptr=i32([0]), indices=i32([]), last=i32([]), seq_lens=i32([])
    ),
}


@pytest.mark.parametrize("code", ODD_BATCHES)
def test_mistakes_that_were_not_measured_are_named_and_not_acted_out(code: str) -> None:
    batch: PagedBatch = ODD_BATCHES[code](make_batch((20, 33, 48), (3, 1, 5)))
    assert caught_from(lambda: plan(wrapper_for("fa2"), batch)).code == code
    with mode.use("faithful"):
        if code == "kv_indptr_not_from_zero":
            plan(wrapper_for("fa2"), batch)  # the planners ignore the first entry: acted out
            return
        if code == "qo_indptr_decreasing":
            with pytest.raises(RuntimeError, match="should be non-negative"):
                plan(wrapper_for("fa2"), batch)
            return
        assert caught_from(lambda: plan(wrapper_for("fa2"), batch)).code == "not_modelled"


def test_lengths_that_grow_are_recognised_by_seq_lens() -> None:
    batch = make_batch((20, 33, 60), (3, 1, 5)).but(indptr=i32([0, 2, 3, 4]), seq_lens=i32([20, 33, 60]))
    error = caught_from(lambda: plan(wrapper_for("fa2"), batch))
    assert error.code == "kv_indptr_is_lengths"
    assert "[0, 2, 5, 9]" in error.fix["en"]


@pytest.mark.parametrize("path", PATHS)
def test_lengths_are_whole_numbers(path: str) -> None:
    batch = make_batch((20, 33))
    wrapper = wrapper_for(path)
    plan(wrapper, batch.but(seq_lens=torch.tensor([20.0, 33.0])))
    for wrong in ([20.5, 33.0], [20.0, float("nan")]):
        error = caught_from(
            lambda lens=wrong: plan(wrapper_for(path), batch.but(seq_lens=torch.tensor(lens)))
        )
        assert (error.code, error.argument) == ("seq_lens_not_integer", "seq_lens")


def test_lengths_that_equal_their_sum_are_right() -> None:
    """Behind an empty request the running sum of page counts is the page counts."""
    batch = make_batch((0, 5), (0, 1), page_size=1).but(seq_lens=i32([0, 5]))
    assert batch.indptr.tolist() == [0, 0, 5]
    plan(wrapper_for("fa2"), batch)


@pytest.mark.parametrize("path", PATHS)
def test_a_list_for_an_array(path: str) -> None:
    batch = make_batch((20,)).but(last=[4])
    with pytest.raises(AttributeError, match="'list' object has no attribute 'to'"):
        plan(wrapper_for(path), batch)


def test_an_empty_request_may_have_any_last_page_len_but_on_fa3() -> None:
    """The host computes last_page_len for a request without pages, the device 0; fa3 uses the host's."""
    batch = make_batch((20, 0, 5), (1, 1, 1), page_size=4)
    lengthy = batch.but(last=i32([4, 1, 1]))
    for path in ("dec", "tc", "fa2"):
        plan(wrapper_for(path), lengthy)
    assert caught_from(lambda: plan(wrapper_for("fa3"), lengthy)).code == "last_page_len_of_empty_request"
    plan(wrapper_for("fa3"), lengthy.but(seq_lens=i32([20, 0, 5])))
    plan(wrapper_for("fa3"), batch)


def test_the_first_page_number_beyond_the_pool_is_refused() -> None:
    batch = make_batch((20, 33))
    for page, legal in ((9, True), (10, False)):
        changed = batch.but(indices=batch.indices.clone())
        changed.indices[2] = page
        wrapper = wrapper_for("dec")
        plan(wrapper, changed)
        assert batch.k.shape[0] == 10
        if legal:
            wrapper.run(batch.q, (batch.k, batch.v))
        else:
            error = caught_from(lambda w=wrapper: w.run(batch.q, (batch.k, batch.v)))
            assert (error.code, error.params["position"]) == ("page_out_of_range", 2)


def test_with_seq_lens_a_missing_0_is_not_measured() -> None:
    """plan skips its arithmetic of lengths when they are given, so the measured error doesn't come."""
    batch = make_batch((20, 33, 48), (1, 1, 1)).but(indptr=i32([2, 5, 8]), seq_lens=i32([20, 33, 48]))
    error = caught_from(lambda: plan(wrapper_for("fa2"), batch))
    assert error.code == "kv_indptr_no_leading_zero"
    assert "The size of tensor" not in str(error)
    with mode.use("faithful"):
        assert caught_from(lambda: plan(wrapper_for("fa2"), batch)).code == "not_modelled"


def test_faithful_passes_over_a_harmless_mistake_to_the_one_that_counts() -> None:
    batch = make_batch((20, 33), heads=(10, 2)).but(seq_lens=i32([20, 30]))
    with mode.use("faithful"), pytest.raises(RuntimeError, match="Unsupported group_size: 5"):
        plan(wrapper_for("dec"), batch)


def test_faithful_takes_what_follows_from_a_mistake_for_part_of_it() -> None:
    """Indices from a column of a wider table: between them the kernel finds numbers of other pages, which
    the pool need not have; that is no second mistake."""
    batch = make_batch((20, 33))
    wide = torch.full((5, 2), 999, dtype=torch.int32)
    wide[:, 0] = batch.indices
    wrapper = wrapper_for("fa2")
    with mode.use("faithful"):
        plan(wrapper, batch.but(indices=wide[:, 0]))
        out = wrapper.run(batch.q, (batch.k, batch.v))
    assert bool(out.isfinite().all())


def test_types_shapes_and_strides_at_run() -> None:
    batch = make_batch((20, 33))
    changed = {
        "q_dtype": batch.but(q=batch.q.float()),
        "k_dtype": batch.but(k=batch.k.float()),
        "v_dtype": batch.but(v=batch.v.float()),
        "q_shape": batch.but(q=batch.q[:, :4]),
        "cache_shape": batch.but(k=batch.k[:, :, :1], v=batch.v[:, :, :1]),
        "last_dim_not_contiguous": batch.but(q=batch.q.transpose(1, 2).contiguous().transpose(1, 2)),
        "cache_dimensions": batch.but(k=batch.k[0, 0], v=batch.v[0, 0]),
    }
    for code, wrong in changed.items():
        wrapper = wrapper_for("tc")
        plan(wrapper, batch)
        assert caught_from(lambda w=wrapper, b=wrong: w.run(b.q, (b.k, b.v))).code == code


def test_strides_of_single_pages_and_heads_dont_matter() -> None:
    batch = make_batch((3, 5), page_size=1, heads=(2, 1))
    pages = batch.k.shape[0]
    v = torch.as_strided(batch.v, batch.v.shape, (64, 7, 9, 1))
    wrapper = wrapper_for("dec")
    plan(wrapper, batch)
    assert v.shape == (pages, 1, 1, 64)
    assert torch.equal(wrapper.run(batch.q, (batch.k, v)), wrapper.run(batch.q, (batch.k, batch.v)))


def test_data_type_alone_leaves_q_at_float16() -> None:
    batch = make_batch((20,), dtype=torch.bfloat16)
    wrapper = wrapper_for("dec")
    wrapper.plan(batch.indptr, batch.indices, batch.last, 8, 2, 64, 16, data_type=torch.bfloat16)
    with pytest.raises(ValueError, match=r"does not match the q_data_type torch\.float16") as caught:
        wrapper.run(batch.q, (batch.k, batch.v))
    assert "data_type alone does not set it" in str(caught.value)


def test_window_at_run_must_be_the_plans() -> None:
    batch = make_batch((20,))
    wrapper = wrapper_for("dec")
    plan(wrapper, batch, window_left=3)
    wrapper.run(batch.q, (batch.k, batch.v), window_left=3)
    with pytest.raises(AssertionError) as caught:
        wrapper.run(batch.q, (batch.k, batch.v), window_left=4)
    assert isinstance(caught.value, KernelError)


COMMON_PLAN_OPTIONS: dict[str, Any] = {
    "rope_scale": 1.0,
    "rope_theta": 1e4,
    "o_data_type": "float32",
    "block_tables": torch.zeros(1),
    "window_left": -2,
}
PLAN_OPTIONS = {
    "dec": COMMON_PLAN_OPTIONS | {"window_right": 1, "q_len_per_req": 2},
    "fa2": COMMON_PLAN_OPTIONS
    | {
        "use_fp16_qk_reduction": True,
        "prefix_len_ptr": torch.zeros(1),
        "token_pos_in_items_ptr": torch.zeros(1),
        "token_pos_in_items_len": 1,
        "max_item_len_ptr": torch.zeros(1),
        "seq_lens_q": torch.zeros(1),
        "max_token_per_sequence": 5,
        "max_sequence_kv": 5,
        "uniform_q_len": 1,
    },
}
COMMON_RUN_OPTIONS: dict[str, Any] = {
    "q_scale": 2.0,
    "k_scale": 2.0,
    "v_scale": 2.0,
    "kv_cache_sf": torch.zeros(1),
    "skip_softmax_threshold_scale_factor": 1.0,
}
RUN_OPTIONS = {
    "dec": COMMON_RUN_OPTIONS | {"q_len_per_req": 2},
    "fa2": COMMON_RUN_OPTIONS | {"use_fp16_softmax": True, "uses_spcompress": True},
}
INIT_OPTIONS = {
    "dec": {"jit_args": [1], "backend": "cudnn"},
    "fa2": {
        "jit_kwargs": {"a": 1},
        "custom_mask_buf": torch.zeros(1),
        "mask_indptr_buf": torch.zeros(1),
    },
}


def options(table: dict[str, dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(path, name, value, id=f"{path}-{name}")
        for path, given in table.items()
        for name, value in given.items()
    ]


def refuses(name: str, call: Any) -> None:
    error = caught_from(call)
    assert isinstance(error, NotImplementedError)
    assert (error.code, error.argument) == ("not_modelled", name)


@pytest.mark.parametrize(("path", "name", "value"), options(PLAN_OPTIONS))
def test_plan_options_that_are_not_computed(path: str, name: str, value: Any) -> None:
    refuses(name, lambda: plan(wrapper_for(path), make_batch((20,)), **{name: value}))


@pytest.mark.parametrize(("path", "name", "value"), options(RUN_OPTIONS))
def test_run_options_that_are_not_computed(path: str, name: str, value: Any) -> None:
    batch = make_batch((20,))
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # q_len_per_req at run
        refuses(name, lambda: wrapper.run(batch.q, (batch.k, batch.v), **{name: value}))
    refuses("args", lambda: wrapper.run(batch.q, (batch.k, batch.v), 1.0))


@pytest.mark.parametrize(("path", "name", "value"), options(INIT_OPTIONS))
def test_constructor_options_that_are_not_computed(path: str, name: str, value: Any) -> None:
    workspace = torch.empty(64, dtype=torch.uint8)
    kind = (
        flashinfer.BatchDecodeWithPagedKVCacheWrapper
        if path == "dec"
        else flashinfer.BatchPrefillWithPagedKVCacheWrapper
    )
    refuses(name, lambda: kind(workspace, **{name: value}))


@pytest.mark.parametrize("path", PATHS)
def test_split_options_are_hints(path: str) -> None:
    batch = make_batch((20,))
    wrapper = wrapper_for(path)
    plan(wrapper, batch, disable_split_kv=True, fixed_split_size=None)
    wrapper.run(batch.q, (batch.k, batch.v), enable_pdl=True)
    if path == "dec":
        with pytest.raises(ValueError, match="fixed_split_size is only supported by tensor core decode"):
            plan(wrapper, batch, fixed_split_size=2)
    else:
        plan(wrapper, batch, fixed_split_size=2)


def test_decode_options_by_position_are_deprecated_and_counted() -> None:
    batch = make_batch((20,))
    wrapper = wrapper_for("dec")
    sizes = (8, 2, 64, 16)
    arrays = (batch.indptr, batch.indices, batch.last)
    with pytest.warns(DeprecationWarning, match="by position"):
        wrapper.plan(*arrays, *sizes, "NONE", 7)
    assert wrapper._window_left == 7
    with pytest.raises(TypeError, match="multiple values for argument 'window_left'"):
        wrapper.plan(*arrays, *sizes, "NONE", 7, window_left=7)
    with pytest.raises(TypeError, match="at most 16"):
        wrapper.plan(*arrays, *sizes, *range(17))
    with pytest.raises(TypeError, match="no_such"):
        wrapper.plan(*arrays, *sizes, no_such=1)


def test_bad_words_and_buffers_are_refused_as_the_library_does() -> None:
    workspace = torch.empty(65, dtype=torch.uint8)
    for kind in (
        flashinfer.BatchDecodeWithPagedKVCacheWrapper,
        flashinfer.BatchPrefillWithPagedKVCacheWrapper,
    ):
        with pytest.raises(KeyError, match="Invalid kv_layout NDH"):
            kind(workspace, "NDH")
        with pytest.raises(ValueError, match="must be 16-byte aligned"):
            kind(workspace[1:])
    with pytest.raises(KeyError, match="Invalid pos_encoding_mode X"):
        plan(wrapper_for("fa2"), make_batch((20,)), pos_encoding_mode="X")
    with pytest.raises(ValueError, match="strict"):
        mode.use("lenient")


def test_the_mode_comes_back_after_a_block_and_stays_after_a_call() -> None:
    with mode.use("faithful"):
        assert mode.current() == "faithful"
        with mode.use("strict"):
            assert mode.is_strict()
        assert mode.current() == "faithful"
    assert mode.is_strict()
    mode.use("faithful")
    assert mode.current() == "faithful"


def test_a_lost_context_outlives_its_mode() -> None:
    batch = make_batch((20, 33))
    wrapper = wrapper_for("dec")
    with mode.use("faithful"):
        plan(wrapper, batch.but(indices=torch.full_like(batch.indices, 999)))
        assert caught_from(lambda: wrapper.run(batch.q, (batch.k, batch.v))).code == "context_lost"
    attempts = (
        lambda: wrapper_for("dec"),
        lambda: plan(wrapper, batch),
        lambda: wrapper.run(batch.q, (batch.k, batch.v)),
    )
    for call in attempts:
        error = caught_from(call)
        assert (error.code, error.params["cause"]) == ("context_lost", "page_out_of_range")
    mode.new_context()
    plan(wrapper_for("dec"), batch)


def test_decode_and_prefill_name_their_own_arguments() -> None:
    batch = make_batch((20, 33)).but(indices=i32([0, 1, 2, 3, -1]))
    for paths, name in ((DECODE_PATHS, "indices"), (PREFILL_PATHS, "paged_kv_indices")):
        for path in paths:
            assert caught_from(lambda p=path: plan(wrapper_for(p), batch)).argument == name


@pytest.mark.parametrize(
    ("outcome", "en", "zh"),
    [(DIVISION_BY_ZERO, "ends the process: SIGFPE", "SIGFPE"), (HANGS, "does not come back", "不再返回")],
)
def test_what_would_end_or_stop_the_process_is_told_and_not_done(outcome: Outcome, en: str, zh: str) -> None:
    text = {"en": "{argument} is wrong.", "zh": "{argument} 不对。"}
    found = Finding(Mistake("some_mistake", what=text, fix=text, real={"fa3": outcome}), "page_size")
    with mode.use("faithful"):
        error = caught_from(lambda: settle([found], "fa3", during="run"))
    assert error.code == "not_modelled"
    assert error.params["mistake"] == "some_mistake"
    assert en in error.what["en"]
    assert zh in error.what["zh"]


def test_cuda_errors_are_told_apart() -> None:
    text = {"en": "{argument} is wrong.", "zh": "{argument} 不对。"}
    found = Finding(Mistake("some_mistake", what=text, fix=text, real={"dec": MISALIGNED}), "q")
    assert "CUDA error: misaligned address, and the CUDA context is lost" in found.error("dec").real["en"]
    try:
        with mode.use("faithful"), pytest.raises(KernelError, match="CUDA error: misaligned address"):
            act(settle([found], "dec", during="run"))
        with pytest.raises(KernelError, match=r"misaligned address \(caused by: some_mistake"):
            require_context()
    finally:
        mode.new_context()
