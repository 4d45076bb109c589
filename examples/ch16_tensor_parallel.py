"""Chapter 16: one engine, and the same model cut in two.

Two processes, each with half of every head, matrix and vocabulary, meet over gloo and generate; their tokens
have to be those of one process that has everything. Then the price: what the ranks send each other for one
token of an answer, counted and by formula. The model is `MINISGL_MODEL`, or a thin one that tools/models.py
makes.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import torch  # noqa: E402

from minisgl.attention.utils import make_positions  # noqa: E402
from minisgl.core import Batch, Phase, Req, SamplingParams  # noqa: E402
from minisgl.distributed import DistributedCommunicator, DistributedInfo  # noqa: E402
from minisgl.engine import Engine, EngineConfig  # noqa: E402

PROMPTS = [[785, 6722, 315, 9625, 374], [16, 488, 220, 16, 284, 220]]
NEW_TOKENS = 8
ROW_TOKENS = 32
RANKS = 2
SECONDS = 60  # for the ranks to meet, generate and leave


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("thin"))


def build_engine(rank: int, size: int, address: str) -> Engine:
    """Request r has the row r of the page table and the positions from 32 r on."""
    engine = Engine(
        EngineConfig(
            model_path=model_folder(),
            tp_info=DistributedInfo(rank, size),
            dtype=torch.float32,
            device=torch.device("cpu"),
            attention_backend="torch",
            max_running_req=len(PROMPTS),
            num_page_override=len(PROMPTS) * ROW_TOKENS,
            max_seq_len_override=ROW_TOKENS,
            distributed_init_method=address,
            distributed_timeout=SECONDS,
        )
    )
    for row in range(len(PROMPTS)):
        engine.page_table[row] = torch.arange(row * ROW_TOKENS, (row + 1) * ROW_TOKENS)
    return engine


def prepare(engine: Engine, phase: Phase, reqs: list[Req]) -> Batch:
    batch = Batch(reqs, phase)
    batch.positions = make_positions(reqs, engine.device)
    batch.input_ids = torch.cat([req.input_ids[req.cached_len : req.device_len] for req in reqs])
    batch.out_loc = torch.cat(
        [engine.page_table[req.table_idx, req.cached_len : req.device_len] for req in reqs]
    )
    engine.attn_backend.prepare_metadata(batch)
    return batch


class Traffic:
    """Counts what this rank hands to collective operations: calls and bytes, by operation."""

    def __init__(self) -> None:
        self.seen: dict[str, list[int]] = {"all_reduce": [], "all_gather": []}
        for name, sizes in self.seen.items():
            setattr(
                DistributedCommunicator, name, self._counted(getattr(DistributedCommunicator, name), sizes)
            )

    @staticmethod
    def _counted(
        operation: Callable[[DistributedCommunicator, torch.Tensor], torch.Tensor], sizes: list[int]
    ) -> Callable[[DistributedCommunicator, torch.Tensor], torch.Tensor]:
        def counted(communicator: DistributedCommunicator, x: torch.Tensor) -> torch.Tensor:
            sizes.append(x.nbytes)
            return operation(communicator, x)

        return counted

    def take(self) -> dict[str, tuple[int, int]]:
        """Calls and bytes since the last time, by operation."""
        taken = {name: (len(sizes), sum(sizes)) for name, sizes in self.seen.items()}
        for sizes in self.seen.values():
            sizes.clear()
        return taken


def generate(engine: Engine, traffic: Traffic) -> tuple[list[list[int]], dict[str, tuple[int, int]]]:
    """Greedy answers to all prompts in one batch, and the traffic of the last step."""
    reqs = [
        Req(torch.tensor(prompt, dtype=torch.int32), row, 0, NEW_TOKENS, row, SamplingParams(), None)
        for row, prompt in enumerate(PROMPTS)
    ]
    answers: list[list[int]] = [[] for _ in PROMPTS]
    phase: Phase = "prefill"
    for _ in range(NEW_TOKENS):
        traffic.take()
        batch = prepare(engine, phase, reqs)
        out = engine.forward_batch(batch, engine.sampler.prepare(batch))
        out.copy_done.synchronize()
        for req, token in zip(reqs, out.next_tokens_cpu, strict=True):
            req.append_host(token.view(1))
            answers[req.uid].append(int(token))
        phase = "decode"
    return answers, traffic.take()


def run_rank(rank: int, size: int, address: str) -> dict[str, object]:
    torch.set_num_threads(1)
    traffic = Traffic()
    engine = build_engine(rank, size, address)
    tokens, step = generate(engine, traffic)
    weights = sum(weight.nbytes for weight in engine.model.state_dict().values())
    engine.shutdown()
    return {"tokens": tokens, "step": step, "weights": weights}


def run_ranks(size: int) -> list[dict[str, object]]:
    """What each of `size` processes reports; they are gone afterwards, whatever happens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    processes = [
        subprocess.Popen([sys.executable, __file__, str(rank), str(size), address], stdout=subprocess.PIPE)
        for rank in range(size)
    ]
    deadline = time.monotonic() + SECONDS
    try:
        outputs = [
            process.communicate(timeout=max(0.1, deadline - time.monotonic()))[0] for process in processes
        ]
    finally:
        for process in processes:
            process.kill()
    if any(process.returncode for process in processes):
        sys.exit(
            f"the ranks ended with {[process.returncode for process in processes]}; see their errors above"
        )
    return [json.loads(output) for output in outputs]


def main() -> None:
    whole, *halves = run_ranks(1) + run_ranks(RANKS)
    print("TP 1 的回答:", *whole["tokens"])
    print(f"TP {RANKS} 的回答:", *halves[0]["tokens"])
    print("逐 token 相同:", all(half["tokens"] == whole["tokens"] for half in halves))
    mb = [report["weights"] / 2**20 for report in (whole, *halves)]
    print(
        f"权重: TP 1 {mb[0]:.1f} MiB；TP {RANKS} 每个 rank " + "、".join(f"{size:.1f} MiB" for size in mb[1:])
    )

    config = json.loads((Path(model_folder()) / "config.json").read_text())
    layers, hidden, vocab = (config[key] for key in ("num_hidden_layers", "hidden_size", "vocab_size"))
    batch = len(PROMPTS)
    (reduces, reduced), (gathers, gathered) = (
        halves[0]["step"][name] for name in ("all_reduce", "all_gather")
    )
    print(f"\n一步 decode（{batch} 个请求），每个 rank 交出的数据:")
    print(f"  all_reduce {reduces} 次 = {layers} 层 x 2 + 词嵌入 1 次")
    print(f"    {reduced} 字节；每个 token {reduced // batch} = {2 * layers + 1} x {hidden} x 4")
    print(f"  all_gather {gathers} 次，logits 的 1/{RANKS}")
    print(f"    {gathered} 字节；每个 token {gathered // batch} = {-(-vocab // RANKS)} x 4")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(run_rank(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
    else:
        main()
