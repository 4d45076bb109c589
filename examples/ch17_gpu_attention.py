"""Chapter 17: what FlashInfer and FlashAttention are told about a batch, and whether they answer alike.

Two requests share a batch: the first has 3 of its 5 tokens cached, the second 5 of 6. The backends `fi` and
`fa` prepare their metadata for it, which is printed, and their logits are compared with the reference
backend's.

Without a GPU the two libraries are replaced by stand-ins with the same interface, from `fakes/`; the backends
run unchanged. On a GPU, `KERNELS=real` leaves the stand-ins out, runs in bfloat16 and compares with the real
kernels. The model is `MINISGL_MODEL`, or a thin one that tools/models.py makes.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = os.environ.get("KERNELS", "fake")
if KERNELS not in ("fake", "real"):
    sys.exit(f"KERNELS={KERNELS}: say fake or real")
REAL = KERNELS == "real"
sys.path[:0] = [str(ROOT)] if REAL else [str(ROOT / "fakes"), str(ROOT)]

import torch  # noqa: E402

from minisgl.attention.base import BaseAttnMetadata  # noqa: E402
from minisgl.attention.fa import FAMetadata  # noqa: E402
from minisgl.attention.fi import FIMetadata  # noqa: E402
from minisgl.attention.utils import make_positions  # noqa: E402
from minisgl.core import Batch, Phase, Req, SamplingParams  # noqa: E402
from minisgl.distributed import DistributedInfo  # noqa: E402
from minisgl.engine import Engine, EngineConfig  # noqa: E402

PROMPTS = [[785, 6722, 315, 9625, 374], [16, 488, 220, 16, 284, 220]]
POOL_TOKENS = 64
FIRST_POSITIONS = [16, 40]  # where the requests' tokens lie in the pool; both are multiples of 4
DTYPE = torch.bfloat16 if REAL else torch.float32
BACKENDS = [("torch", 1), ("fi", 1), ("fa", 4)]  # name, page size


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("thin"))


def build_engine(backend: str, page_size: int, dtype: torch.dtype = DTYPE) -> Engine:
    engine = Engine(
        EngineConfig(
            model_path=model_folder(),
            tp_info=DistributedInfo(0, 1),
            dtype=dtype,
            device=None if REAL else torch.device("cpu"),
            attention_backend=backend,
            page_size=page_size,
            max_running_req=2,
            num_page_override=POOL_TOKENS // page_size,
            max_seq_len_override=32,
        )
    )
    for row, first in enumerate(FIRST_POSITIONS):
        engine.page_table[row, :16] = torch.arange(first, first + 16)
    return engine


def make_requests(cached_lens: list[int]) -> list[Req]:
    return [
        Req(
            input_ids=torch.tensor(prompt, dtype=torch.int32),
            table_idx=row,
            cached_len=cached_len,
            output_len=4,
            uid=row,
            sampling_params=SamplingParams(),
            cache_handle=None,
        )
        for row, (prompt, cached_len) in enumerate(zip(PROMPTS, cached_lens, strict=True))
    ]


def make_batch(engine: Engine, phase: Phase, reqs: list[Req]) -> Batch:
    batch = Batch(reqs=reqs, phase=phase)
    new_ids = torch.cat([req.input_ids[req.cached_len : req.device_len] for req in reqs])
    batch.input_ids = new_ids.to(engine.device)
    batch.positions = make_positions(reqs, engine.device)
    batch.out_loc = torch.cat(
        [engine.page_table[req.table_idx, req.cached_len : req.device_len] for req in reqs]
    )
    engine.attn_backend.prepare_metadata(batch)
    return batch


def forward(engine: Engine, batch: Batch) -> torch.Tensor:
    with torch.inference_mode(), engine.ctx.forward_batch(batch):
        return engine.model.forward()


def answer(engine: Engine) -> torch.Tensor:
    """Logits of the batch in question: both prompts go through as a whole first, so that their keys and
    values are in the pool; then the batch computes what is not cached and reads the rest."""
    forward(engine, make_batch(engine, "prefill", make_requests([0, 0])))
    batch = make_batch(engine, "prefill", make_requests([3, 5]))
    show_metadata(batch.attn_metadata)
    return forward(engine, batch)


def show_metadata(metadata: BaseAttnMetadata) -> None:
    if isinstance(metadata, FIMetadata):
        print("FlashInfer（按 page_size=1 使用 KV 池）:")
        print("  qo_indptr      =", metadata.cu_seqlens_q_cpu.tolist())
        print("  kv_indptr      =", metadata.cu_seqlens_k_cpu.tolist())
        print("  kv_indices     =", metadata.indices.tolist())
        print("  last_page_len  =", metadata.last_page_len_cpu.tolist())
    if isinstance(metadata, FAMetadata):
        print("FlashAttention（page_size=4，page table 存页号）:")
        print("  cu_seqlens_q   =", metadata.cu_seqlens_q.tolist())
        print("  cache_seqlens  =", metadata.cache_seqlens.tolist())
        print("  page_table     =", metadata.page_table.tolist())


def count_calls(owner: object, name: str) -> list[str]:
    """Replace a method by one that also notes each call in the list that is returned."""
    method, calls = getattr(owner, name), []

    def counted(*args: object, **kwargs: object) -> object:
        calls.append(name)
        return method(*args, **kwargs)

    setattr(owner, name, counted)
    return calls


def main() -> None:
    if REAL and not torch.cuda.is_available():
        sys.exit("KERNELS=real needs an NVIDIA GPU that torch can see; without KERNELS this runs on the CPU")
    logits: dict[str, torch.Tensor] = {}
    for backend, page_size in BACKENDS:
        engine = build_engine(backend, page_size)
        plans = count_calls(engine.attn_backend.prefill_wrapper, "plan") if backend == "fi" else []
        logits[backend] = answer(engine)
        if backend == "fi":
            layers = engine.config.model_config.num_layers
            print(
                f"  prefill wrapper 的 plan 次数: {len(plans)} "
                f"（两个 batch 各一次；每个 batch 的 {layers} 层共用一次 plan）"
            )
        engine.shutdown()
    for backend in ("fi", "fa"):
        print(f"{backend} 与参考后端 logits 的最大误差: {difference(logits[backend], logits['torch'])}")
    if REAL:
        engine = build_engine("torch", 1, torch.float32)
        print(f"参考后端 bfloat16 与 float32 之间: {difference(logits['torch'], answer(engine))}")
        engine.shutdown()


def difference(a: torch.Tensor, b: torch.Tensor) -> str:
    return f"{(a.float() - b.float()).abs().max().item():.2e}"


if __name__ == "__main__":
    main()
