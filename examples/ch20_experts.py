"""Chapter 20: one layer of experts, computed expert by expert and as two grouped products.

The router is random with a taste of its own, as trained ones have: how unevenly tokens spread is what the
first table shows. Then both backends compute the same layer, and have to agree. On an NVIDIA GPU it runs in
bfloat16, there and elsewhere in float32.
"""

import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import torch  # noqa: E402

from minisgl.moe import create_moe_backend  # noqa: E402
from minisgl.moe.base import BaseMoEBackend, route  # noqa: E402
from minisgl.moe.fused import group_by_expert  # noqa: E402
from minisgl.utils.device import synchronize  # noqa: E402

EXPERTS, TOP_K, HIDDEN, WIDTH = 16, 2, 256, 128
BATCHES = (1, 16, 256)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPES = (torch.float32, torch.bfloat16) if DEVICE.type == "cuda" else (torch.float32,)


class Layer:
    """Weights of a layer, and tokens with their router's scores."""

    def __init__(self, dtype: torch.dtype) -> None:
        generator = torch.Generator().manual_seed(20)

        def randn(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator)

        self.gate_up = (randn(EXPERTS, 2 * WIDTH, HIDDEN) / HIDDEN**0.5).to(DEVICE, dtype)
        self.down = (randn(EXPERTS, HIDDEN, WIDTH) / WIDTH**0.5).to(DEVICE, dtype)
        self.x = randn(max(BATCHES), HIDDEN).to(DEVICE, dtype)
        self.logits = (randn(max(BATCHES), EXPERTS) + 0.7 * randn(EXPERTS)).to(DEVICE, dtype)

    def run(self, backend: BaseMoEBackend, tokens: int) -> torch.Tensor:
        x, logits = self.x[:tokens], self.logits[:tokens]
        return backend.forward(x, logits, self.gate_up, self.down, TOP_K, True)


def milliseconds(layer: Layer, backend: BaseMoEBackend, tokens: int) -> float:
    times = []
    for _ in range(12):
        synchronize(DEVICE)
        begun = time.perf_counter()
        layer.run(backend, tokens)
        synchronize(DEVICE)
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times[2:])


def main() -> None:
    backends = {name: create_moe_backend(name) for name in ("torch", "fused")}
    layer = Layer(DTYPES[0])
    tokens = 64
    routing = route(layer.logits[:tokens], TOP_K, renormalize=True)
    counts = routing.experts.flatten().bincount(minlength=EXPERTS)
    grouping = group_by_expert(routing.experts, EXPERTS)
    print(f"{tokens} 个 token，{EXPERTS} 个专家，每个 token 选 {TOP_K} 个")
    print(
        "  token 0 选中专家",
        routing.experts[0].tolist(),
        "权重",
        [round(w, 3) for w in routing.weights[0].tolist()],
    )
    print("  每个专家的 token 数 =", counts.tolist())
    print(f"  最忙的专家是平均的 {counts.max().item() * EXPERTS / (tokens * TOP_K):.2f} 倍")
    print("  排序后的终点 offsets =", grouping.offsets.tolist())

    for dtype in DTYPES:
        layer = Layer(dtype)
        print(f"\n{DEVICE.type}，{str(dtype).removeprefix('torch.')}")
        print("  token 数  逐个专家 ms  分组 ms  输出的最大差")
        for tokens in BATCHES:
            naive, grouped = (layer.run(backend, tokens).float() for backend in backends.values())
            times = [milliseconds(layer, backend, tokens) for backend in backends.values()]
            difference = (naive - grouped).abs().max().item()
            print(f"  {tokens:>8}  {times[0]:>11.3f}  {times[1]:>7.3f}  {difference:.2e}")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
