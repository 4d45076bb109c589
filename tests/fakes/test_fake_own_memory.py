"""What a kernel writes has room for every entry: a tensor that lies over itself, as after expand(), is named; views of larger
tensors are not. And a workspace is given back when nobody has its wrapper any more."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import flashinfer
import pytest
import sgl_kernel
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from paged_batches import PATHS, i32, make_batch, plan, plan_and_run, wrapper_for

WEIGHT = torch.ones(64).half()
POSITIONS = i32(range(6))
Write = Callable[[torch.Tensor], object]
"""A call that writes into the given half tensor, [6, 64]."""


def rows() -> torch.Tensor:
    return torch.randn(6, 64).half()


def appended(to: torch.Tensor) -> None:
    """Two tokens to pages of 1 token, whose K is `to`."""
    cache = to.view(6, 1, 1, 64)
    new = torch.ones(2, 1, 64).half()
    flashinfer.append_paged_kv_cache(
        new,
        new,
        i32([0, 0]),
        i32([0, 1]),
        (cache, rows().view(6, 1, 1, 64)),
        i32([2, 4]),
        i32([0, 2]),
        i32([1]),
    )


WRITES: dict[str, tuple[str, Write]] = {
    "norm": ("out", lambda x: flashinfer.rmsnorm(rows(), WEIGHT, out=x)),
    "gemma's norm": ("out", lambda x: sgl_kernel.gemma_rmsnorm(rows(), WEIGHT, out=x)),
    "added to": ("input", lambda x: flashinfer.fused_add_rmsnorm(x, rows(), WEIGHT)),
    "sum": ("residual", lambda x: sgl_kernel.fused_add_rmsnorm(rows(), x, WEIGHT)),
    "turned": (
        "q",
        lambda x: flashinfer.apply_rope_pos_ids_inplace(x.view(6, 1, 64), rows().view(6, 1, 64), POSITIONS),
    ),
    "appended to": ("paged_kv_cache", appended),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("use", ["strict", "faithful"])
def test_rows_of_one_memory_are_not_written(name: str, use: str) -> None:
    argument, write = WRITES[name]
    for given in (
        torch.zeros(1, 64).half().expand(6, 64),
        torch.zeros(640).half().as_strided((6, 64), (32, 1)),
    ):
        with mode.use(use), pytest.raises(KernelError) as caught:
            write(given)
        error = caught.value
        told = error.code if use == "strict" else error.params["mistake"]
        assert (told, error.argument) == ("memory_overlaps_itself", argument)


@pytest.mark.parametrize("name", [name for name in WRITES if name != "appended to"])
def test_rows_of_a_larger_tensor_are_written(name: str) -> None:
    _, write = WRITES[name]
    write(torch.zeros(6, 192).half()[:, 64:128])
    write(torch.zeros(12, 64).half()[::2])


def outs(rows: int) -> dict[str, torch.Tensor]:
    return {
        "expanded": torch.zeros(1, 8, 64).half().expand(rows, 8, 64),
        "heads expanded": torch.zeros(rows, 1, 64).half().expand(rows, 8, 64),
        "overlapping": torch.zeros(4096).half().as_strided((rows, 8, 64), (64, 64, 1)),
    }


@pytest.mark.parametrize("name", outs(1))
def test_fa3_takes_any_strides_of_out_that_leave_room(name: str) -> None:
    batch = make_batch((20, 33), (3, 2))
    with pytest.raises(KernelError) as caught:
        plan_and_run("fa3", batch, out=outs(len(batch.q))[name])
    assert (caught.value.code, caught.value.argument) == ("memory_overlaps_itself", "out")
    by_heads = torch.zeros(8, len(batch.q), 64).half().transpose(0, 1)
    plan_and_run("fa3", batch, out=by_heads)
    assert torch.equal(by_heads, plan_and_run("fa3", batch))


def sliced(batch: Any) -> Any:
    """The batch with K and V as halves of one pool, inside a larger one."""
    pool = torch.randn(len(batch.k) + 4, 2, *batch.k.shape[1:]).to(batch.k.dtype)[2:-2]
    pool[:, 0], pool[:, 1] = batch.k, batch.v
    return pool


@pytest.mark.parametrize("path", ["dec", "tc", "fa2", "fa3"])
def test_columns_and_halves_are_right(path: str) -> None:
    """q out of a joined projection, a stacked cache out of a larger pool."""
    batch = make_batch((20, 33), (3, 2) if path.startswith("fa") else None)
    joined = torch.randn(len(batch.q), 12 * 64).to(batch.q.dtype)
    q = joined[:, : 8 * 64].view(-1, 8, 64)
    q.copy_(batch.q)
    pool = sliced(batch)
    out = plan_and_run(path, batch.but(q=q, k=pool[:, 0], v=pool[:, 1]))
    assert torch.equal(out, plan_and_run(path, batch))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("look", [False, True])
def test_a_wrapper_and_its_workspace_go_with_its_last_name(path: str, look: bool) -> None:
    """Workspaces are large: none may wait for a collector of cycles, which counts objects and not their bytes."""
    batch = make_batch((20, 33, 16), (1, 1, 1))
    wrapper = wrapper_for(path)
    gc.disable()
    try:
        plan(wrapper, batch)
        if look:
            assert wrapper.plan_info is not None
        wrapper.run(batch.q, (batch.k, batch.v))
        kept = [weakref.ref(wrapper), weakref.ref(wrapper._float_workspace_buffer)]
        del wrapper
        assert [ref() for ref in kept] == [None, None]
    finally:
        gc.enable()
