"""What an H200 did with q, caches, results and buffers that are not those of the plan, on every kernel path, in both modes.
Written down by hand from the measurements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from measured_cases import check_account, everywhere
from paged_batches import (
    DECODE_PATHS,
    PATHS,
    PREFILL_PATHS,
    PagedBatch,
    i32,
    make_batch,
    plan,
    plan_and_run,
    wrapper_for,
)

KV_LENS, Q_LENS = (40, 33, 20), (3, 5, 2)


def right_batch(path: str, **sizes: Any) -> PagedBatch:
    return make_batch(KV_LENS, None if path in DECODE_PATHS else Q_LENS, **sizes)


def run(wrapper: Any, batch: PagedBatch, **options: Any) -> Any:
    return wrapper.run(batch.q, (batch.k, batch.v), **options)


def other_run(path: str, planned: PagedBatch, given: PagedBatch) -> Any:
    """A plan for one batch, a run with another's q and cache."""
    wrapper = wrapper_for(path)
    plan(wrapper, planned)
    return run(wrapper, given)


def refused(call: Callable[[], Any]) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    return caught.value


def heads_last(tensor: torch.Tensor) -> torch.Tensor:
    """The same values with the last two dimensions the other way round in memory."""
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


@dataclass(frozen=True)
class Case:
    """A run of a plan for `right_batch` with what `wrong` makes of its q and cache."""

    code: str
    wrong: Callable[[PagedBatch], PagedBatch]
    real: dict[str, Any]
    argument: str


def other_layout(b: PagedBatch) -> PagedBatch:
    return b.but(k=b.k.transpose(1, 2).contiguous(), v=b.v.transpose(1, 2).contiguous())


MISALIGNED, INSTRUCTION = "misaligned address", "an illegal instruction was encountered"
EQUAL_DIMS = (
    RuntimeError,
    "Check failed: head_dim_qk == head_dim_vo (128 vs. 64) : CUDA cores template only supports equal head dim",
)
CASES = {
    "the other layout": Case(
        "cache_shape",
        other_layout,
        {
            "dec": (RuntimeError, "Unsupported group_size: 0"),
            "tc": "garbage",
            "fa2": "garbage",
            "fa3": "SIGFPE",
        },
        "paged_kv_cache",
    ),
    "V of another type": Case(
        "v_dtype", lambda b: b.but(v=b.v.bfloat16()), everywhere("garbage"), "paged_kv_cache"
    ),
    "V of another size": Case(
        "v_dtype", lambda b: b.but(v=b.v.float()), everywhere("unmeasured"), "paged_kv_cache"
    ),
    "twice the heads": Case(
        "q_shape",
        lambda b: b.but(q=torch.cat([b.q, b.q], 1)),
        {"dec": "harmless", "tc": "harmless", "fa2": "garbage", "fa3": "garbage"},
        "q",
    ),
    "half the heads": Case("q_shape", lambda b: b.but(q=b.q[:, :4]), everywhere("unmeasured"), "q"),
    "twice the head_dim": Case(
        "q_shape",
        lambda b: b.but(q=torch.cat([b.q, b.q], 2)),
        {"dec": EQUAL_DIMS, "tc": "garbage", "fa2": "garbage", "fa3": "garbage"},
        "q",
    ),
    "q apart": Case(
        "last_dim_not_contiguous",
        lambda b: b.but(q=heads_last(b.q)),
        {**everywhere(MISALIGNED), "fa3": INSTRUCTION},
        "q",
    ),
    "K and V apart": Case(
        "last_dim_not_contiguous",
        lambda b: b.but(k=heads_last(b.k), v=heads_last(b.v)),
        everywhere(MISALIGNED),
        "paged_kv_cache",
    ),
    "every second entry of a wider q": Case(
        "last_dim_not_contiguous",
        lambda b: b.but(q=torch.cat([b.q, b.q], 2)[..., ::2]),
        everywhere("unmeasured"),
        "q",
    ),
}
ALL = [
    pytest.param(case, path, outcome, id=f"{name}-{path}")
    for name, case in CASES.items()
    for path, outcome in case.real.items()
]


@pytest.mark.parametrize(("case", "path", "outcome"), ALL)
def test_strict_refuses_these_runs_and_tells_what_was_measured(case: Case, path: str, outcome: Any) -> None:
    batch = right_batch(path)
    error = refused(lambda: other_run(path, batch, case.wrong(batch)))
    assert (error.code, error.argument) == (case.code, case.argument)
    check_account(error, outcome)


@pytest.mark.parametrize(("case", "path", "outcome"), ALL)
def test_faithful_acts_these_runs_out(case: Case, path: str, outcome: Any) -> None:
    batch = right_batch(path)
    given = case.wrong(batch)
    with mode.use("faithful"):
        if isinstance(outcome, tuple):
            with pytest.raises(outcome[0], match=re.escape(outcome[1])) as caught:
                other_run(path, batch, given)
            assert not isinstance(caught.value, KernelError)
        elif outcome in ("unmeasured", "SIGFPE"):
            error = refused(lambda: other_run(path, batch, given))
            assert (error.code, error.params["mistake"]) == ("not_modelled", case.code)
        elif outcome in (MISALIGNED, INSTRUCTION):
            for _ in range(2):
                with pytest.raises(KernelError, match=outcome):
                    other_run(path, batch, given)
        else:
            out = other_run(path, batch, given)
            assert out.shape == (*given.q.shape[:2], 64)
            assert bool(out.isfinite().all())
            assert torch.equal(out, other_run(path, batch, given))
            q = given.q[..., :64].contiguous()
            right = plan_and_run(path, batch.but(q=q, heads=(q.shape[1], 2)))
            if outcome == "harmless":
                assert torch.equal(out, right)
            else:
                assert not torch.allclose(out, right, atol=1e-2)


@pytest.mark.parametrize("path", PATHS)
def test_faithful_a_plan_for_half_the_page_size(path: str) -> None:
    """Measured: fa3 alone goes by the planned lengths, and the last pages, too large for the plan, are none for the cache."""
    batch = right_batch(path).but(kv_lens=(40, 33, 25), last=i32([8, 1, 9]))
    halved = batch.but(page_size=8)
    right = plan_and_run(path, batch)
    with mode.use("faithful"):
        out = other_run(path, halved, batch)
    if path != "fa3":
        assert torch.equal(out, right)
        return
    planned = batch.but(kv_lens=(24, 17, 17), last=i32([8, 1, 1]), indptr=i32([0, 2, 4, 6]))
    pages = torch.cat([batch.indices[:2], batch.indices[3:5], batch.indices[6:8]])
    assert torch.equal(out, plan_and_run(path, planned.but(indices=pages)))


@pytest.mark.parametrize("path", PATHS)
def test_faithful_two_mistakes_of_one_cache_were_not_measured(path: str) -> None:
    batch = right_batch(path)
    for given in (batch.but(v=batch.v[:3].bfloat16()), batch.but(v=batch.v[..., :32].bfloat16())):
        with mode.use("faithful"):
            assert refused(lambda g=given: other_run(path, batch, g)).code == "not_modelled"


@pytest.mark.parametrize("path", PATHS)
def test_faithful_v_is_read_as_ks_type(path: str) -> None:
    batch = right_batch(path)
    given = batch.but(v=batch.v.bfloat16())
    with mode.use("faithful"):
        out = other_run(path, batch, given)
    assert torch.equal(out, plan_and_run(path, batch.but(v=given.v.view(torch.float16))))


@pytest.mark.parametrize("path", PATHS)
def test_faithful_fewer_kv_heads_than_planned(path: str) -> None:
    """Measured: right but on fa2, whose tiles of 16 packed rows were laid for groups of 2 and not of 4; the request of 5
    rows needs two of them."""
    batch = right_batch(path)
    right = plan_and_run(path, batch)
    planned = batch.but(heads=(8, 4))
    error = refused(lambda: other_run(path, planned, batch))
    assert error.code == "cache_shape"
    assert error.params["got"] == 2
    with mode.use("faithful"):
        out = other_run(path, planned, batch)
    if path != "fa2":
        assert torch.equal(out, right)
        return
    late = torch.zeros(10, dtype=torch.bool)
    late[7] = True
    torch.testing.assert_close(out[~late], right[~late])
    assert not bool(out[late].any())


@pytest.mark.parametrize("path", ["tc", "fa2", "fa3"])
def test_faithful_of_wider_heads_the_planned_part_counts(path: str) -> None:
    batch = right_batch(path)
    with mode.use("faithful"):
        out = other_run(path, batch, batch.but(q=torch.cat([batch.q, batch.q], 2)))
    scaled = batch.but(plan_options={"sm_scale": 128**-0.5})
    torch.testing.assert_close(out, plan_and_run(path, scaled), atol=2e-3, rtol=1e-2)


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_faithful_more_rows_than_requests(path: str) -> None:
    """Measured: tensor cores leave the rest alone; CUDA cores spoil all rows besides."""
    batch = right_batch(path)
    given = batch.but(q=torch.cat([batch.q, batch.q[:2]]))
    assert refused(lambda: other_run(path, batch, given)).code == "q_rows"
    out = torch.full_like(given.q, 7.0)
    with mode.use("faithful"):
        wrapper = wrapper_for(path)
        plan(wrapper, batch)
        assert run(wrapper, given, out=out) is out
    assert bool((out[3:] == 7).all())
    right = plan_and_run(path, batch)
    if path == "tc":
        assert torch.equal(out[:3], right)
    else:
        assert bool(((out[:3] - right).abs().amax(dim=(1, 2)) > 1e-2).all())


@pytest.mark.parametrize("path", PATHS)
def test_results_in_a_view(path: str) -> None:
    """Measured: fa3 goes by the strides of out, the others write in order from its first entry."""
    batch = right_batch(path)
    right = plan_and_run(path, batch)
    wide = torch.full((len(batch.q), 8, 128), 7.0, dtype=torch.float16)
    if path == "fa3":
        assert torch.equal(plan_and_run(path, batch, out=wide[..., :64]), right)
        assert bool((wide[..., 64:] == 7).all())
        return
    error = refused(lambda: plan_and_run(path, batch, out=wide[..., :64]))
    assert error.code == "out_not_contiguous"
    assert "returns wrong numbers" in error.real["en"]
    with mode.use("faithful"):
        view = plan_and_run(path, batch, out=wide[..., :64])
    assert torch.equal(wide.flatten()[: right.numel()].view_as(right), right)
    assert not torch.allclose(view, right, atol=1e-2)


@pytest.mark.parametrize("path", PATHS)
def test_an_lse_is_filled_that_nobody_asked_for(path: str) -> None:
    """Measured: the kernels write it whether or not it is returned, in base 2 and unturned."""
    batch = right_batch(path)
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    right, told = run(wrapper, batch, return_lse=True)
    options = [{}] if path in DECODE_PATHS else [{}, {"lse_base": "ln"}, {"lse_layout": "HN"}]
    for more in options:
        lse = torch.full((len(batch.q), 8), 7.0)
        out = run(wrapper, batch, lse=lse, **more)
        assert isinstance(out, torch.Tensor)
        torch.testing.assert_close(out, right, atol=2e-3, rtol=1e-2)
        assert torch.equal(lse, told)


@pytest.mark.parametrize("path", PATHS)
def test_the_form_of_an_lse_that_nobody_asked_for(path: str) -> None:
    """Measured: only the kernel's binding looks at it, and at its shape alone; of a half type the memory is written over."""
    batch = right_batch(path)
    rows = len(batch.q)
    of_rows, of_heads = ("batch_size", "num_qo_heads") if path == "dec" else ("q.size(0)", "q.size(1)")
    for lse, message in (
        (torch.zeros(1, 8), f"Check failed: lse.size(0) == {of_rows} (1 vs. {rows})"),
        (torch.zeros(rows, 4), f"Check failed: lse.size(1) == {of_heads} (4 vs. 8)"),
    ):
        error = refused(lambda lse=lse: plan_and_run(path, batch, lse=lse))
        assert (error.code, error.argument) == ("out_mismatch", "lse")
        assert message in error.real["en"]
        with mode.use("faithful"), pytest.raises(RuntimeError, match=re.escape(message)) as caught:
            plan_and_run(path, batch, lse=lse)
        assert not isinstance(caught.value, KernelError)
    half = torch.full((rows, 8), 7.0, dtype=torch.float16)
    error = refused(lambda: plan_and_run(path, batch, lse=half))
    assert "returns wrong numbers" in error.real["en"]
    with mode.use("faithful"):
        out = plan_and_run(path, batch, lse=half)
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    right, told = run(wrapper, batch, return_lse=True)
    assert torch.equal(out, right)
    assert torch.equal(half.flatten().view(torch.float32), told.flatten()[: half.numel() // 2])
    for unknown in (
        torch.zeros(rows, 8, dtype=torch.float64),
        torch.zeros(rows, 16)[:, ::2],
        torch.zeros(()),
    ):
        assert refused(lambda lse=unknown: plan_and_run(path, batch, lse=lse)).argument == "lse"
        with mode.use("faithful"):
            assert refused(lambda lse=unknown: plan_and_run(path, batch, lse=lse)).code == "not_modelled"
    assert refused(lambda: plan_and_run(path, batch, lse=[1.0])).argument == "lse"


def test_an_lse_is_filled_under_blocks_too() -> None:
    """Read in the library's source: these wrappers give it to the same kernels."""
    q, kv = torch.randn(8, 8, 64).half(), torch.randn(16, 2, 64).half()
    wrapper = flashinfer.BlockSparseAttentionWrapper(torch.empty(1 << 20, dtype=torch.uint8))
    wrapper.plan(i32([0, 1, 2]), i32([1, 2]), 8, 16, 4, 4, 8, 2, 64)
    lse = torch.full((8, 8), 7.0)
    assert isinstance(wrapper.run(q, kv, kv, lse=lse), torch.Tensor)
    assert torch.equal(lse, wrapper.run(q, kv, kv, return_lse=True)[1])


def test_a_workspace_of_two_dimensions_counts_by_the_first() -> None:
    batch = make_batch((9000, 8000), spare_pages=0)
    wide = torch.empty(128, 1 << 20, dtype=torch.uint8)
    error = refused(lambda: flashinfer.BatchDecodeWithPagedKVCacheWrapper(wide))
    assert error.code == "workspace_form"
    assert "Buffer overflow when allocating memory" in error.real["en"]
    with mode.use("faithful"):
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(wide)
        plan(wrapper, right_batch("dec"))  # needs none
        assert torch.equal(run(wrapper, right_batch("dec")), plan_and_run("dec", right_batch("dec")))
        message = r"batch_decode_tmp_v with size 274432 and alignment 16, but only 128 bytes available"
        with pytest.raises(RuntimeError, match=message) as caught:
            plan(wrapper, batch)
        assert not isinstance(caught.value, KernelError)


def graph_wrapper(path: str, *buffers: torch.Tensor) -> Any:
    return flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(
        torch.empty(8 << 20, dtype=torch.uint8), *buffers, use_tensor_cores=path == "tc"
    )


@pytest.mark.parametrize("wide", [(0, 1, 2), (0,), (1,), (2,)])
@pytest.mark.parametrize("path", DECODE_PATHS)
def test_buffers_of_int64(path: str, wide: tuple[int, ...]) -> None:
    """Measured with all three and with the last alone: CUDA cores check the type, tensor cores read pairs of int32."""
    sizes = (4, 64, 3)
    types = [torch.int64 if i in wide else torch.int32 for i in range(3)]
    buffers = [torch.zeros(n, dtype=dtype) for n, dtype in zip(sizes, types, strict=True)]
    first = ("paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len")[wide[0]]
    error = refused(lambda: graph_wrapper(path, *buffers))
    assert (error.code, error.argument) == ("graph_buffer_form", f"{first}_buffer")
    batch = right_batch(path)
    with mode.use("faithful"):
        wrapper = graph_wrapper(path, *buffers)
        plan(wrapper, batch)
        if path == "dec":
            message = f"{first}.dtype() == dl_int32 (int64 vs. int32) : Inconsistency of Tensor type: {first}"
            with pytest.raises(RuntimeError, match=re.escape(message)) as caught:
                run(wrapper, batch)
            assert not isinstance(caught.value, KernelError)
        else:
            assert not torch.allclose(run(wrapper, batch), plan_and_run(path, batch), atol=1e-2)
        short = [torch.zeros(n, dtype=torch.int16) for n in sizes]
        assert refused(lambda: graph_wrapper(path, *short)).code == "not_modelled"


@pytest.mark.parametrize("path", DECODE_PATHS)
def test_buffers_that_overlap(path: str) -> None:
    memory = torch.zeros(64, dtype=torch.int32)
    buffers = (memory[:4], memory[2:], i32([0, 0, 0]))
    error = refused(lambda: graph_wrapper(path, *buffers))
    assert error.code == "graph_buffers_overlap"
    assert "returns wrong numbers" in error.real["en"]
    batch = right_batch(path)
    with mode.use("faithful"):
        wrapper = graph_wrapper(path, *buffers)
        plan(wrapper, batch)
        assert not torch.allclose(run(wrapper, batch), plan_and_run(path, batch), atol=1e-2)


def test_under_graphs_arrays_may_lie_apart() -> None:
    """plan copies them into the buffers by their strides."""
    batch = right_batch("dec")

    def apart(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x, x], 1).flatten()[::2]

    spread = batch.but(indptr=apart(batch.indptr), indices=apart(batch.indices), last=apart(batch.last))
    for path in DECODE_PATHS:
        wrapper = graph_wrapper(path, i32([0] * 4), i32([0] * 64), i32([0] * 3))
        plan(wrapper, spread)
        assert torch.equal(run(wrapper, batch), plan_and_run(path, batch))


@pytest.mark.parametrize("path", PREFILL_PATHS)
def test_masks_aside_prefill_buffers_were_not_measured(path: str) -> None:
    names = ("qo_indptr_buf", "paged_kv_indptr_buf", "paged_kv_indices_buf", "paged_kv_last_page_len_buf")
    buffers = {name: torch.zeros(4, dtype=torch.int64) for name in names}

    def build() -> Any:
        space = torch.empty(1 << 20, dtype=torch.uint8)
        return flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            space, use_cuda_graph=True, backend=path, **{**buffers, names[3]: torch.zeros(3).long()}
        )

    assert refused(build).code == "graph_buffer_form"
    with mode.use("faithful"):
        assert refused(build).code == "not_modelled"
