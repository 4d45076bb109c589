"""Tensor parallelism held against a single rank: the same prompts, the same tokens, logits within tolerance; decode tokens a
second and bytes reduced a token of both. Over NCCL where there are GPUs, over gloo between CPU processes.

Each rank is a process of its own (`python tools/bench_tp.py RANK ...`), which prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import click

ROOT = Path(__file__).resolve().parent.parent
DEADLINE_S = 400.0
# Qwen3-0.6B's config.json, as far as the architecture goes.
SHAPE_06B = {
    "vocab_size": 151_936,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    # A head of its own, unlike the original's: see `with_clear_winners`.
    "tie_word_embeddings": False,
}
OWN_SHARE = 0.35


@dataclass(frozen=True)
class Case:
    """One model in one dtype. `tolerance`: of logits, absolute, on a scale where they lie within some tens."""

    name: str
    dtype: str
    backend: str
    tolerance: float


def cases(cuda: bool, backend: str) -> list[Case]:
    """Tiny models in float32, in which tokens must be equal; on GPUs a real shape in bf16 too."""
    tiny = [Case("qwen3", "float32", "torch", 1e-3), Case("qwen3_moe", "float32", "torch", 1e-3)]
    return [*tiny, Case("qwen3-0.6b", "bfloat16", backend, 0.5)] if cuda else tiny


def model_of(name: str, scratch: Path) -> Path:
    """The model's folder: a tiny one from its recipe, or the 0.6B shape with random weights."""
    if name != "qwen3-0.6b":
        from tools.models import cached

        return cached(name)
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    folder = scratch / name
    config = Qwen3Config(**SHAPE_06B, initializer_range=0.05, eos_token_id=None, pad_token_id=0)
    with torch.device("cuda"):
        model = with_clear_winners(Qwen3ForCausalLM(config).to(torch.bfloat16))
    model.save_pretrained(folder)
    return folder


def with_clear_winners(model: Any) -> Any:
    """The model with random weights in which greedy has no near ties even in bfloat16.

    The best of 150,000 independent random logits leads the second by a fifth of a standard deviation, often by less
    than bfloat16 can tell, and then two correct engines part. So the head knows each token's successor, a fixed
    permutation: its row is the token's embedding. The embedding is scaled until `OWN_SHARE` of the last hidden state
    points along it: sqrt(hidden) * 0.35 = 11 standard deviations for the successor, while the layers still make seven
    eighths of the state's energy, so that a rank that computes something else changes logits and tokens.
    """
    import torch

    rows = model.get_input_embeddings().weight
    vocabulary = rows.shape[0]
    tokens = torch.randint(vocabulary, (4, 48), device=rows.device)
    unit = torch.randn_like(rows, dtype=torch.float32)
    low, high = 1e-3, 1e3
    with torch.no_grad():
        for _ in range(20):
            scale = (low * high) ** 0.5
            rows.copy_(unit * scale)
            state = model(tokens, output_hidden_states=True).hidden_states[-1].float()
            share = torch.cosine_similarity(state, rows[tokens].float(), dim=-1).median().item()
            low, high = (scale, high) if share < OWN_SHARE else (low, scale)
        successor = torch.randperm(vocabulary, device=rows.device)
        head = model.get_output_embeddings().weight
        head[successor] = (unit / unit.shape[1] ** 0.5).to(head.dtype)
    return model


def run_rank(rank: int, size: int, address: str, folder: str, case: Case, cuda: bool) -> dict[str, Any]:
    """One rank's work: generate, record the logits of the first prefill, time decoding."""
    import torch

    from minisgl.core import SamplingParams
    from minisgl.distributed import DistributedInfo, impl
    from minisgl.llm import LLM

    reduced = 0
    plain = impl.DistributedCommunicator.all_reduce

    def counting(self: Any, x: torch.Tensor) -> Any:
        nonlocal reduced
        reduced += x.numel() * x.element_size()
        return plain(self, x)

    impl.DistributedCommunicator.all_reduce = counting
    llm = LLM(
        folder,
        dtype=case.dtype,
        tp_info=DistributedInfo(rank, size),
        distributed_init_method=address,
        attention_backend=case.backend,
        num_page_override=8192,
        max_running_req=32,
        cuda_graph_max_bs=16,
    )
    generator = torch.Generator().manual_seed(7)
    vocabulary = min(llm.engine.config.model_config.vocab_size, 500)
    prompts = [
        torch.randint(5, vocabulary, (n,), generator=generator).tolist()
        for n in (3, 17, 40, 5, 64, 9, 28, 12)
    ]
    logits: list[torch.Tensor] = []
    forward = llm.engine.model.forward

    def recording(*args: Any) -> Any:
        out = forward(*args)
        if not logits:
            logits.append(out.detach().float().cpu())
        return out

    llm.engine.model.forward = recording
    reduced = 0
    params = SamplingParams(max_tokens=1, ignore_eos=True)
    llm.generate([prompts[4]], params)
    per_prompt_token = reduced / len(prompts[4])
    llm.engine.model.forward = forward
    answers = llm.generate(prompts, SamplingParams(max_tokens=32, ignore_eos=True, logprobs=2))
    many = prompts * 2
    speeds = []
    for _ in range(2):
        times = []
        for new in (8, 136):
            start = time.perf_counter()
            llm.generate(many, SamplingParams(max_tokens=new, ignore_eos=True))
            times.append(time.perf_counter() - start)
        speeds.append(len(many) * 128 / (times[1] - times[0]))
    path = Path(tempfile.gettempdir()) / f"tp-{os.getppid()}-{size}-{rank}.pt"
    torch.save(logits[0], path)
    result = {
        "tokens": [a["token_ids"] for a in answers],
        "gaps": [[t.top[0][1] - t.top[1][1] for t in a["logprobs"] or []] for a in answers],
        "logits": str(path),
        "bytes_a_token": per_prompt_token,
        "decode_tokens_a_second": max(speeds),
        "graphs": list(llm.engine.graph_runner.sizes),
    }
    llm.shutdown()
    return result


def run_ranks(size: int, folder: Path, case: Case, cuda: bool) -> list[dict[str, Any]]:
    """All ranks of one size, as processes; their results in order of rank. Raises click.ClickException."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    # Multicast over NVLink is left off: on shared hosts a program that uses it can take the GPUs down.
    env = {**os.environ, "NCCL_NVLS_ENABLE": "0", "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [
                sys.executable,
                __file__,
                str(r),
                str(size),
                address,
                str(folder),
                json.dumps(asdict(case)),
                str(int(cuda)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
            cwd=ROOT,
        )
        for r in range(size)
    ]
    try:
        outputs = [rank.communicate(timeout=DEADLINE_S) for rank in ranks]
    except subprocess.TimeoutExpired:
        raise click.ClickException(
            f"{case.name}: {size} ranks gave nothing within {DEADLINE_S:.0f} s"
        ) from None
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (_, errors) in zip(ranks, outputs, strict=True):
        if rank.returncode:
            raise click.ClickException(f"{case.name}: a rank of {size} failed:\n{errors[-3000:]}")
    return [json.loads(out.splitlines()[-1]) for out, _ in outputs]


def compare(
    one: dict[str, Any], many: list[dict[str, Any]], tolerance: float
) -> tuple[float, int, int, float]:
    """Largest difference of logits; tokens that agree before the first difference of each prompt, of how many; and the
    smallest gap between the two best logits at which single rank and ranks chose differently (inf if they never did)."""
    import torch

    first = torch.load(one["logits"], weights_only=True)
    worst = max(float((torch.load(m["logits"], weights_only=True) - first).abs().max()) for m in many)
    agreed = total = 0
    gap = float("inf")
    for index, wanted in enumerate(one["tokens"]):
        got = many[0]["tokens"][index]
        total += len(wanted)
        same = next((i for i, (a, b) in enumerate(zip(wanted, got, strict=True)) if a != b), len(wanted))
        agreed += same
        if same < len(wanted):
            gap = min(gap, one["gaps"][index][same])
    return worst, agreed, total, gap


@click.command()
@click.option("--size", default=2, show_default=True, help="Ranks to hold against one.")
@click.option(
    "--backend", default="auto", show_default=True, help="Attention backend of the real shape, on GPUs."
)
def tp(size: int, backend: str) -> None:
    """Tensor parallelism against a single rank."""
    import torch

    cuda = torch.cuda.is_available()
    if cuda and torch.cuda.device_count() < size:
        raise click.ClickException(f"{size} ranks need {size} GPUs, there are {torch.cuda.device_count()}")
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases(cuda, backend):
            folder = model_of(case.name, Path(scratch))
            (one,) = run_ranks(1, folder, case, cuda)
            many = run_ranks(size, folder, case, cuda)
            worst, agreed, total, gap = compare(one, many, case.tolerance)
            alike = all(m["tokens"] == many[0]["tokens"] for m in many)
            # Tokens may part only where the two best logits are as near each other as ranks are to one rank.
            fine = worst <= case.tolerance and alike and (agreed == total or gap <= case.tolerance)
            failed = failed or not fine
            click.echo(
                f"{case.name} {case.dtype} {case.backend}, {'NCCL' if cuda else 'gloo'}: {'ok' if fine else 'DIFFERENT'}; "
                f"logits within {worst:.2e} (tolerance {case.tolerance:g}); {agreed} of {total} tokens before any "
                f"difference" + ("" if agreed == total else f", the smallest gap there {gap:.2e}") + "; "
                f"decode {one['decode_tokens_a_second']:.0f} tokens/s on 1, {many[0]['decode_tokens_a_second']:.0f} on "
                f"{size}; {many[0]['bytes_a_token']:.0f} bytes reduced a token; graphs {many[0]['graphs']}"
            )
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    outcome = run_rank(
        int(arguments[0]),
        int(arguments[1]),
        arguments[2],
        arguments[3],
        Case(**json.loads(arguments[4])),
        arguments[5] == "1",
    )
    print(json.dumps(outcome), flush=True)
