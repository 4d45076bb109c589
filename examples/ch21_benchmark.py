"""Chapter 21: how fast is it, and why? A server is timed from outside, under requests that arrive by chance; then
parts of the engine are switched off one at a time.

The model is `MINISGL_MODEL`, or a tiny one that tools/models.py makes. On a small model most of a step is the
engine's own work, so the figures say little about a GPU; the words they are told in are the same.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from minisgl.benchmark import random_workload  # noqa: E402
from minisgl.benchmark.client import run_client  # noqa: E402
from minisgl.benchmark.offline import run_offline  # noqa: E402
from minisgl.llm import LLM  # noqa: E402

PAGES = 2048
START_S = 120.0
VARIANTS = {
    "全开": {},
    "没有前缀缓存": {"cache_type": "naive"},
    "没有重叠调度": {"overlap": False},
    "一次只跑一个请求": {"max_running_req": 1},
}


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("qwen3"))


def measure_server(model: str) -> None:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    server = subprocess.Popen(
        [sys.executable, "-m", "minisgl", "--model", model, "--port", "0", "--num-pages", str(PAGES)],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()  # empty if the server ends before it serves
        if not line:
            sys.exit(f"the server did not start: exit code {server.wait(START_S)}")
        workload = random_workload(12, (16, 48), (4, 12), vocab_size=500)
        print("在线：12 个请求，每秒 20 个，泊松到达")
        print(asyncio.run(run_client(line.split()[-1], workload, rate=20.0)))
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(START_S)


def measure_variants(model: str) -> None:
    workload = random_workload(6, (8, 16), (6, 6), vocab_size=500, shared_prefix=96)
    print("\n离线：6 个请求，96 个 token 的公共前缀，各生成 6 个 token")
    print("tokens/s  命中率  ")
    for name, options in VARIANTS.items():
        llm = LLM(model, num_page_override=PAGES, **options)
        try:
            result = run_offline(llm, workload, temperature=0.0)
        finally:
            llm.shutdown()
        print(f"{result.output_per_s:>8.1f}{result.hit_rate:>7.0%}   {name}")


if __name__ == "__main__":
    measure_server(model_folder())
    measure_variants(model_folder())
