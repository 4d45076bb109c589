"""Routing in the fakes alone: the documented example, and what strict mode refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sgl_kernel
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError


def i32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


IDS = i32(2, 3, 4, 1, 2, 4, 1, 3, 4, 1, 2, 3).view(4, 3)


def align(
    ids: torch.Tensor = IDS,
    num_experts: int = 6,
    block_size: int = 4,
    room: int = 36,
    buckets: int = 7,
    of_block: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Experts 0..4 unless told otherwise."""
    places, used = torch.full((room,), -7, dtype=torch.int32), i32(-7)
    blocks = torch.full((9,), -7, dtype=torch.int32) if of_block is None else of_block
    buffers = (places, blocks, used, torch.zeros(buckets, dtype=torch.int32))
    sgl_kernel.moe_align_block_size(ids, num_experts, block_size, *buffers, True)
    return places, blocks, used


def test_four_tokens_with_three_experts_each() -> None:
    """The library's own example, its experts 1 to 4."""
    places, blocks, used = align()
    assert int(used) == 16
    assert places[:16].tolist() == [3, 6, 9, 12, 0, 4, 10, 12, 1, 7, 11, 12, 2, 5, 8, 12]
    assert places[16:].tolist() == [12] * 20
    assert blocks[:4].tolist() == [1, 2, 3, 4]
    assert blocks[4:].tolist() == [-7] * 5


def test_experts_elsewhere_come_first() -> None:
    places, blocks, used = align(i32(-1, 0, -1, 1).view(4, 1), num_experts=3)
    assert int(used) == 12
    assert places[:12].tolist() == [0, 2, 4, 4, 1, 4, 4, 4, 3, 4, 4, 4]
    assert blocks[:3].tolist() == [-1, 0, 1]


def route(
    weights: torch.Tensor | None = None, ids: torch.Tensor | None = None, gating: torch.Tensor | None = None
) -> None:
    sgl_kernel.topk_softmax(
        torch.zeros(2, 3) if weights is None else weights,
        torch.zeros(2, 3, dtype=torch.int32) if ids is None else ids,
        torch.zeros(2, 4) if gating is None else gating,
    )


UNMEASURED: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "an id far below -1": ("expert_out_of_range", "topk_ids", lambda: align(i32(-2000, 0).view(2, 1))),
    "room for sums": ("buffer_too_small", "cumsum_buffer", lambda: align(buckets=6)),
    "ids as floats": ("index_types_differ", "topk_ids", lambda: align(IDS.float())),
    "blocks in int64": ("index_types_differ", "experts_ids", lambda: align(of_block=torch.zeros(9).long())),
    "blocks of 0": ("number_wrong", "block_size", lambda: align(block_size=0)),
    "strided ids": ("not_contiguous", "topk_ids", lambda: align(IDS.t())),
    "strided weights": ("not_contiguous", "topk_weights", lambda: route(torch.zeros(3, 2).t())),
}

NOTICED: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "ids in int64": (
        "routing_type",
        "expected scalar type Int but found Long",
        lambda: route(ids=torch.zeros(2, 3).long()),
    ),
    "weights in half": (
        "routing_type",
        "expected scalar type Float but found Half",
        lambda: route(torch.zeros(2, 3).half()),
    ),
    "gating in double": (
        "routing_type",
        "gating_output must be float32, float16, or bfloat16",
        lambda: route(gating=torch.zeros(2, 4).double()),
    ),
    "one dimension": (
        "routing_shapes",
        r"topk_weights must be 2D tensor \[num_tokens, topk\]",
        lambda: route(torch.zeros(3)),
    ),
    "tokens": ("routing_shapes", "must match num_tokens in gating_output", lambda: route(torch.zeros(1, 3))),
    "more than there are": (
        "routing_shapes",
        "topk must be less than or equal to num_experts",
        lambda: route(gating=torch.zeros(2, 2)),
    ),
}


@pytest.mark.parametrize("name", UNMEASURED)
def test_strict_explains_and_faithful_does_not_guess(name: str) -> None:
    code, argument, call = UNMEASURED[name]
    with pytest.raises(KernelError) as caught:
        call()
    assert (caught.value.code, caught.value.argument) == (code, argument)
    assert caught.value.text("zh")
    with mode.use("faithful"), pytest.raises(NotImplementedError) as refused:
        call()
    assert refused.value.code == "not_modelled"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NOTICED)
def test_what_the_library_notices_is_its_error(name: str) -> None:
    code, message, call = NOTICED[name]
    with pytest.raises(RuntimeError, match=message) as caught:
        call()
    assert isinstance(caught.value, KernelError)
    assert caught.value.code == code
    with mode.use("faithful"), pytest.raises(RuntimeError, match=message) as plain:
        call()
    assert not isinstance(plain.value, KernelError)


def test_no_tokens_are_no_work() -> None:
    route(torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.int32), torch.zeros(0, 4))
