"""Chapter 16: shards make up the whole, collective operations keep the order, and cut layers sum to uncut ones.

Several ranks run as processes that meet over gloo; what needs only arithmetic runs here, rank after rank.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from minisgl.distributed import (
    DistributedCommunicator,
    DistributedInfo,
    get_tp_info,
    reset_tp_info,
    set_tp_info,
    try_get_tp_info,
)
from minisgl.layers.linear import LinearColParallelMerged, LinearQKVMerged, LinearRowParallel

SECONDS = 60


def test_a_rank_is_said_once() -> None:
    assert try_get_tp_info() is None
    with pytest.raises(RuntimeError, match="the rank is not known yet"):
        get_tp_info()
    set_tp_info(DistributedInfo(1, 2))
    assert not get_tp_info().is_primary
    with pytest.raises(RuntimeError, match="rank 1 of 2 already"):
        set_tp_info(DistributedInfo(0, 1))
    with pytest.raises(ValueError, match="rank 2 of 2"):
        DistributedInfo(2, 2)


def as_rank(rank: int, size: int) -> None:
    reset_tp_info()
    set_tp_info(DistributedInfo(rank, size))


def test_one_rank_talks_to_nobody() -> None:
    as_rank(0, 1)
    communicator, x = DistributedCommunicator(), torch.randn(3, 2)
    assert communicator.all_reduce(x) is x
    assert communicator.all_gather(x) is x
    assert communicator.all_reduce_min(7) == 7


@pytest.mark.parametrize("size", [2, 4])
def test_columns_then_rows_sum_to_the_whole(size: int) -> None:
    """The partial sums of all ranks, added up by hand, are the MLP of one rank."""
    generator = torch.Generator().manual_seed(0)
    up, down = torch.randn(16, 8, generator=generator), torch.randn(8, 16, generator=generator)
    x = torch.randn(5, 8, generator=generator)
    total = torch.zeros(5, 8)
    for rank in range(size):
        as_rank(rank, size)
        column, row = LinearColParallelMerged(8, [16]), LinearRowParallel(16, 8)
        column.load_state_dict({"weight": up.chunk(size)[rank].contiguous()})
        row.load_state_dict({"weight": down.chunk(size, dim=1)[rank].contiguous()})
        total += F.linear(column.forward(x), row.weight)
    torch.testing.assert_close(total, x @ up.T @ down.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("size", "rows"), [(1, 16), (2, 8), (4, 4), (8, 3)])
def test_more_ranks_than_kv_heads_hold_copies(size: int, rows: int) -> None:
    """8 query heads and 4 KV heads of one dimension: 8 ranks have a query head, and a whole KV head, each."""
    as_rank(0, size)
    assert LinearQKVMerged(4, 1, 8, 4, has_bias=False).weight.shape == (rows, 4)


def test_what_cannot_be_cut_is_refused() -> None:
    as_rank(0, 3)
    with pytest.raises(ValueError, match="number of query heads 8 cannot be divided evenly by 3"):
        LinearQKVMerged(4, 1, 8, 4, has_bias=False)


RANK = """
import sys, torch
from minisgl.distributed import *
rank, size, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
set_tp_info(DistributedInfo(rank, size))
init_process_group(address, torch.device("cpu"), 30.0)
c = DistributedCommunicator()
x = torch.full((2, 3), float(rank + 1))
assert c.all_reduce(x) is x and torch.equal(x, torch.full((2, 3), size * (size + 1) / 2)), x
y = c.all_gather(torch.full((2, 3), rank).t())
assert y.shape == (3 * size, 2) and y[:, 0].tolist() == [r for r in range(size) for _ in range(3)], y
assert c.all_reduce_min(10 - rank) == 10 - (size - 1)
destroy_process_group()
print("done")
"""


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_add_up_and_gather_in_order(size: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    tree = Path(sys.modules["minisgl"].__file__ or "").parent.parent
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(size), address],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    deadline = time.monotonic() + SECONDS
    try:
        outputs = [rank.communicate(timeout=max(0.1, deadline - time.monotonic())) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [out for out, _ in outputs] == ["done\n"] * size, outputs
