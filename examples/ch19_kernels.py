"""Chapter 19: two kernels of our own, against torch.

First the arithmetic that store_kv does, on four tokens. Then both operations on sizes a model has: the
results of ours and of torch's have to be equal, bit for bit. On an NVIDIA GPU the kernels are compiled on the
spot and timed as well; without one, what is shown is why torch runs instead.
"""

import statistics
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import torch  # noqa: E402

from minisgl.kernel import TORCH_OPS, Ops, embedding_lookup, ops_for, store_kv  # noqa: E402
from minisgl.utils.logger import setup_logging  # noqa: E402

PAGES, PAGE_SIZE, HEADS, HEAD_DIM = 2048, 4, 8, 128
HIDDEN, VOCAB = 1024, 32_000
BATCHES = (1, 64, 4096)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16


def show_arithmetic() -> None:
    places = [9, 10, 4, 23]
    row_bytes = HEADS * HEAD_DIM * DTYPE.itemsize
    print(f"store_kv：每个 token 一行 {HEADS} x {HEAD_DIM} x {DTYPE.itemsize} = {row_bytes} 字节")
    print("  token  out_loc  页  页内  字节偏移")
    for token, place in enumerate(places):
        page, within = divmod(place, PAGE_SIZE)
        print(f"  {token:>5}  {place:>7}  {page:>2}  {within:>4}  {place * row_bytes:>8}")
    print(f"  一个 warp 抄一行：32 个线程各抄 16 字节，{row_bytes // 512} 轮抄完")


def new_tokens(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """out_loc, k and v; k and v are parts of a merged projection, so their tokens lie apart."""
    qkv = torch.randn(count, 4 * HEADS, HEAD_DIM, device=DEVICE).to(DTYPE)
    out_loc = torch.randperm(PAGES * PAGE_SIZE, device=DEVICE)[:count].int()
    return out_loc, qkv[:, 2 * HEADS : 3 * HEADS], qkv[:, 3 * HEADS :]


def same_pool(count: int) -> bool:
    out_loc, k, v = new_tokens(count)
    ours, theirs = (
        torch.zeros(2, PAGES, PAGE_SIZE, HEADS, HEAD_DIM, dtype=DTYPE, device=DEVICE) for _ in range(2)
    )
    store_kv(ours[0], ours[1], out_loc, k, v)
    TORCH_OPS.store_kv(theirs[0], theirs[1], out_loc, k, v)
    return torch.equal(ours, theirs)


def same_rows(count: int, weight: torch.Tensor, vocab_range: tuple[int, int] | None) -> bool:
    ids = torch.randint(VOCAB, (count,), dtype=torch.int32, device=DEVICE)
    return torch.equal(
        embedding_lookup(weight, ids, vocab_range), TORCH_OPS.embedding_lookup(weight, ids, vocab_range)
    )


def microseconds(call: Callable[[], object]) -> float:
    """Median over 20 runs of 50 calls, on the device's own clock, after a warm-up."""
    for _ in range(50):
        call()
    times = []
    for _ in range(20):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(50):
            call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000 / 50)
    return statistics.median(times)


def in_a_graph(call: Callable[[], object]) -> Callable[[], object]:
    """The call as a CUDA graph of one: what is left is the device's time, without Python and launches."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            call()
    return graph.replay


def show_timing(ops: Ops, weight: torch.Tensor) -> None:
    pool = torch.zeros(2, PAGES, PAGE_SIZE, HEADS, HEAD_DIM, dtype=DTYPE, device=DEVICE)
    print("\n每次调用的微秒数（逐次调用；括号里是 CUDA graph 里的设备时间）")
    print("  token 数      store_kv 我们      torch             embedding 我们     torch")
    for count in BATCHES:
        out_loc, k, v = new_tokens(count)
        ids = torch.randint(VOCAB, (count,), dtype=torch.int32, device=DEVICE)
        cells = []
        for kind in (ops, TORCH_OPS):

            def store(kind: Ops = kind) -> None:
                kind.store_kv(pool[0], pool[1], out_loc, k, v)  # noqa: B023 (called at once)

            cells.append((microseconds(store), microseconds(in_a_graph(store)) / 20))
        for kind in (ops, TORCH_OPS):

            def look_up(kind: Ops = kind) -> torch.Tensor:
                return kind.embedding_lookup(weight, ids, (0, VOCAB // 2))  # noqa: B023 (called at once)

            cells.append((microseconds(look_up), microseconds(in_a_graph(look_up)) / 20))
        print(f"  {count:>8}  " + "  ".join(f"{call:>8.1f} ({device:>6.2f})" for call, device in cells))


def main() -> None:
    setup_logging()
    torch.manual_seed(0)
    show_arithmetic()

    ops = ops_for("cuda")  # on a GPU this compiles; elsewhere the log says why it does not
    own = ops is not TORCH_OPS
    print(f"\n设备 {DEVICE.type}，实现：{'我们的 CUDA 内核' if own else 'torch（回退）'}")
    weight = torch.randn(VOCAB, HIDDEN, device=DEVICE).to(DTYPE)
    half = weight[VOCAB // 2 :].contiguous()
    print("与 torch 逐位相同？")
    for count in BATCHES:
        print(
            f"  {count:>5} 个 token：store_kv {same_pool(count)}，embedding {same_rows(count, weight, None)}，"
            f"词表分片 {same_rows(count, half, (VOCAB // 2, VOCAB))}"
        )
    if own:
        show_timing(ops, weight)


if __name__ == "__main__":
    main()
