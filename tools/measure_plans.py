"""The schedules of `fakes/fake_kernels/schedule` against the real flashinfer, on an H200: `python tools/measure_plans.py`.

A schedule is a claim about a planner that is only right if the planner makes the same one. For some forty batches a
path this plans with the real library and compares the vector that plan returns, the bytes that it says it needs, the
arrays in its pinned workspace and the least workspace that it takes, number by number. It also measures the blocks per SM
of CUDA-core decode, which the library asks the CUDA runtime for: the table in schedule/gpu.py. Prints a JSON line a batch
and a summary. Every kernel instance is measured in a process of its own, because compiling them is what takes time.

The fakes stay off the path: `flashinfer` must be the real one, only the schedule package is ours.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for a run as a script

from tools.plan_cases import Case, cases

WORKSPACE = 4 << 30
SMS_WANTED = 132

DECODE = [
    f"dec:{dtype}:{dim}:{window}:{cap}"
    for dim in (128, 64)
    for dtype in ("float16", "bfloat16")
    for window in (0, 1)
    for cap in (0, 1)
]
OTHERS = [
    "persistent:float16:128:0:0",
    "fa3:float16:128:0:0",
    "fa2:float16:128:0:0",
    "fa2:float16:128:1:0",
    "fa3:float16:64:0:0",
    "fa2:float16:64:0:0",
    "persistent:float16:64:0:1",
]


def load_schedule() -> Any:
    """The schedule package without `fakes/` on the path, which would put the fake flashinfer there too."""
    base = ROOT / "fakes" / "fake_kernels"
    spec = importlib.util.spec_from_file_location(
        "fake_kernels", base / "__init__.py", submodule_search_locations=[str(base)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fake_kernels"] = module
    spec.loader.exec_module(module)
    return importlib.import_module("fake_kernels.schedule")


class Instance:
    """One compiled kernel: plans on the real library, and the same batch for ours."""

    def __init__(self, kind: str, schedule: Any) -> None:
        self.path, self.dtype, dim, window, cap = kind.split(":")
        self.kind, self.dim, self.window, self.cap = kind, int(dim), window == "1", cap == "1"
        self.schedule = schedule

    def batch(self, case: Case, path: str) -> Any:
        """The case as our schedule takes it."""
        pages = tuple(-(-n // case.page) for n in case.kv)
        return self.schedule.Batch(
            qo_lens=case.qo,
            kv_pages=pages,
            kv_lens=case.kv,
            num_qo_heads=case.heads[0],
            num_kv_heads=case.heads[1],
            head_dim=self.dim,
            page_size=case.page,
            dtype=self.dtype,
            causal=case.causal,
            window_left=case.window,
            soft_cap=self.cap,
            cuda_graph=case.graph,
            fixed_split_pages=case.fixed or -1,
            disable_split_kv=case.unsplit,
            uniform_q_len=(case.uniform or 0) if case.graph else 0,
        )

    def arrays(self, case: Case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """qo_indptr, kv_indptr, indices, last_page_len: int32 on the GPU."""
        pages = [-(-n // case.page) for n in case.kv]
        last = [n - (p - 1) * case.page if p else 0 for n, p in zip(case.kv, pages, strict=True)]
        qo = torch.tensor([0, *case.qo]).cumsum(0)
        kv = torch.tensor([0, *pages]).cumsum(0)
        given = (qo, kv, torch.arange(max(1, sum(pages))), torch.tensor(last))
        first, second, third, fourth = (t.to(torch.int32).cuda() for t in given)
        return first, second, third, fourth

    def wrapper(self, case: Case, path: str, float_bytes: int) -> Any:
        """A wrapper of the real library with a float workspace of that size."""
        import flashinfer

        if path == "persistent":
            made = flashinfer.BatchAttention("NHD", "cuda")
            made.float_workspace_buffer = torch.empty(float_bytes, dtype=torch.uint8, device="cuda")
            return made
        space = torch.empty(max(16, float_bytes), dtype=torch.uint8, device="cuda")[:float_bytes]
        qo, kv, indices, last = self.arrays(case)
        if path in ("dec", "tc"):
            graph = (kv, indices, last) if case.graph else (None, None, None)
            return flashinfer.BatchDecodeWithPagedKVCacheWrapper(
                space, "NHD", case.graph, path == "tc", *(g if g is None else g.clone() for g in graph)
            )
        four = (qo, kv, indices, last) if case.graph else (None,) * 4
        return flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            space, "NHD", case.graph, *(g if g is None else g.clone() for g in four), backend=path
        )

    def plan(self, made: Any, case: Case, path: str, method: str = "plan") -> Any:
        """Call plan, or workspace_size, which takes the same arguments."""
        qo, kv, indices, last = self.arrays(case)
        dtype = getattr(torch, self.dtype)
        cap = 30.0 if self.cap else None
        call = getattr(made, method)
        if path == "persistent":
            lengths = torch.tensor(case.kv, dtype=torch.int32).cuda()
            return call(
                qo,
                kv,
                indices,
                lengths,
                *case.heads,
                self.dim,
                self.dim,
                case.page,
                causal=case.causal,
                logits_soft_cap=cap,
                q_data_type=dtype,
                kv_data_type=dtype,
            )
        options: dict[str, Any] = {"window_left": case.window, "logits_soft_cap": cap, "q_data_type": dtype}
        if path in ("tc", "fa2"):
            options.update(fixed_split_size=case.fixed, disable_split_kv=case.unsplit)
        if path in ("dec", "tc"):
            return call(kv, indices, last, *case.heads, self.dim, case.page, **options)
        if path == "fa2":
            options["uniform_q_len"] = case.uniform
        return call(qo, kv, indices, last, *case.heads, self.dim, case.page, causal=case.causal, **options)

    def compare(self, case: Case, path: str, ours: Any) -> dict[str, Any]:
        """Plan on the real library and hold our schedule to it."""
        told: dict[str, Any] = {
            "kind": self.kind,
            "path": path,
            "requests": len(case.kv),
            "q": sum(case.qo),
            "kv": sum(case.kv),
            "heads": case.heads,
            "page": case.page,
            "options": [name for name in ("graph", "causal", "unsplit") if getattr(case, name)]
            + [f"{name}={getattr(case, name)}" for name in ("window", "fixed", "uniform")],
        }
        made = self.wrapper(case, path, WORKSPACE)
        self.plan(made, case, path)
        real = [int(value) for value in made._plan_info]
        told.update(real=real, ours=list(ours.vector))
        wrong = [] if real == list(ours.vector) else ["vector"]
        pinned = (
            made.page_locked_int_workspace_buffer
            if path == "persistent"
            else made._pin_memory_int_workspace_buffer
        )
        for name, offset, values in ours.arrays:
            there = pinned[offset : offset + 4 * len(values)].view(torch.int32).tolist()
            if there != list(values):
                first = next(i for i, (a, b) in enumerate(zip(there, values, strict=True)) if a != b)
                wrong.append(f"{name}[{first}]: real {there[first]}, ours {values[first]}")
        if path in ("dec", "tc", "fa2"):
            sizes = list(self.plan(made, case, path, "workspace_size"))
            told["bytes"] = sizes
            if sizes != [ours.float_bytes, ours.int_bytes]:
                wrong.append(f"bytes: real {sizes}, ours {[ours.float_bytes, ours.int_bytes]}")
        told.update(items=len(ours.work), equal=not wrong, wrong=wrong)
        return told

    def least(self, case: Case, path: str, ours: Any) -> dict[str, Any]:
        """Whether the workspace that we name is just enough: it plans, one of a byte less is an error."""
        size = ours.float_bytes
        self.plan(self.wrapper(case, path, size), case, path)
        expected = next(p.name for p in reversed(self.layout(case, path).pieces) if p.buffer == "float")
        try:
            self.plan(self.wrapper(case, path, size - 1), case, path)
        except RuntimeError as error:
            said = str(error)
            return {
                "kind": self.kind,
                "path": path,
                "least": size,
                "equal": expected in said,
                "error": said[-420:],
            }
        return {
            "kind": self.kind,
            "path": path,
            "least": size,
            "equal": False,
            "wrong": ["a byte less is accepted"],
        }

    def refused(self, case: Case, path: str, words: str) -> dict[str, Any]:
        """Whether the library refuses what our planner refuses, in the same words."""
        told = {"kind": self.kind, "path": path, "refusal": words}
        try:
            self.plan(self.wrapper(case, path, WORKSPACE), case, path)
        except RuntimeError as error:
            return {**told, "equal": words in str(error), "error": str(error)[-420:]}
        return {**told, "equal": False, "wrong": ["the library plans it"]}

    def ours(self, case: Case, path: str) -> Any:
        """Our schedule of a case."""
        batch = self.batch(case, path)
        if path == "dec":
            return self.schedule.decode.describe(batch, self.blocks[batch.group])
        return self.schedule.describe(batch, path)

    def layout(self, case: Case, path: str) -> Any:
        """What our plan takes from the workspaces."""
        batch = self.batch(case, path)
        if path == "dec":
            return self.schedule.decode.decide(batch, self.blocks[batch.group]).layout
        return self.schedule.workspaces(batch, path)

    def blocks_per_sm(self) -> dict[int, int]:
        """By group: a graph's padded batch with one KV head is the whole grid."""
        found = {}
        for group in self.schedule.gpu.GROUPS:
            case = Case((1,), (4096,), (group, 1), 16, graph=True, window=100 if self.window else -1)
            made = self.wrapper(case, "dec", WORKSPACE)
            self.plan(made, case, "dec")
            found[group] = int(made._plan_info[0]) // SMS_WANTED
        return found

    def measure(self, count: int) -> Iterator[dict[str, Any]]:
        """All lines of this instance."""
        if self.path == "dec":
            self.blocks = self.blocks_per_sm()
            yield {
                "kind": self.kind,
                "blocks_per_sm": self.blocks,
                "key": [self.dtype, self.dim, self.window, self.cap],
            }
        for path in ("fa2", "tc") if self.path == "fa2" else (self.path,):
            tried = 0
            for case in cases(path, self.window, count):
                try:
                    ours = self.ours(case, path)
                except ValueError as error:
                    yield self.refused(case, path, str(error))
                    continue
                if ours.float_bytes > WORKSPACE:
                    yield {"kind": self.kind, "path": path, "skipped": f"needs {ours.float_bytes} bytes"}
                    continue
                yield self.compare(case, path, ours)
                if ours.float_bytes and tried < 4:
                    tried += 1
                    yield self.least(case, path, ours)
        if self.path == "persistent":
            yield from self.edges()
        if self.path == "dec":
            yield self.overrun()

    def overrun(self) -> dict[str, Any]:
        """Decode under graphs with empty requests whose chunks don't fit: which rows differ from a plan without graphs."""
        graph = Case((1,) * 30, (0,) * 24 + (2000,) * 6, (24, 24), 1, graph=True)
        if self.window:
            return {"kind": self.kind, "edge": "empty requests", "said": "not tried with a window"}
        info = self.ours(graph, "dec")
        dtype = getattr(torch, self.dtype)
        q = torch.randn(30, 24, self.dim, dtype=dtype, device="cuda")
        cache = torch.randn(sum(graph.kv), 1, 24, self.dim, dtype=dtype, device="cuda")
        outs = []
        for case in (replace(graph, graph=False), graph):
            made = self.wrapper(case, "dec", WORKSPACE)
            self.plan(made, case, "dec")
            outs.append(made.run(q, (cache, cache), out=torch.full_like(q, 7.0)).float())
        torch.cuda.synchronize()
        wrong = (~torch.isclose(outs[0], outs[1], atol=2e-2)).flatten(1).any(1).nonzero().flatten().tolist()
        said = f"{len(info.work)} chunks in arrays for {info.padded_batch_size}; rows that differ: {wrong}"
        return {"kind": self.kind, "edge": "empty requests", "said": said}

    def edges(self) -> Iterator[dict[str, Any]]:
        """What BatchAttention does with many KV heads, with an empty KV, and with KV shorter than q."""
        import flashinfer

        for heads in (8, 16, 32):
            made = flashinfer.BatchAttention("NHD", "cuda")
            case = Case((4,), (64,), (heads, heads), 16)
            try:
                self.plan(made, case, "persistent")
                said = "planned"
            except RuntimeError as error:
                said = str(error)[-420:]
            yield {"kind": self.kind, "edge": f"{heads} KV heads in its own 384 MiB", "said": said}
        for causal in (False, True):
            for qo, kv in (((3, 5), (0, 70)), ((5, 3), (2, 70)), ((40, 3), (7, 0)), ((0, 3), (7, 40))):
                case = Case(qo, kv, (8, 2), 16, causal=causal)
                made = flashinfer.BatchAttention("NHD", "cuda")
                self.plan(made, case, "persistent")
                dtype = getattr(torch, self.dtype)
                cache = torch.randn(16, 16, 2, self.dim, dtype=dtype, device="cuda")
                q = torch.randn(sum(qo), 8, self.dim, dtype=dtype, device="cuda")
                out = torch.full_like(q, 7.0)
                lse = torch.full(q.shape[:2], 7.0, device="cuda")
                caps = {"logits_soft_cap": 30.0} if self.cap else {}
                made.run(q, (cache, cache), out=out, lse=lse, **caps)
                rows = [[round(float(v), 4) for v in (out[i, 0, 0], lse[i, 0])] for i in range(len(q))]
                yield {
                    "kind": self.kind,
                    "edge": f"qo {qo} kv {kv} causal {causal}",
                    "out, lse": str(rows[:12]),
                }
        if self.cap:
            made.run(q, (cache, cache), out=out, lse=lse)
            said = f"{float(out[0, 0, 0])} {float(lse[0, 0])} nan {bool(out.isnan().any())}"
            yield {"kind": self.kind, "edge": "planned with a soft cap, run without", "said": said}


def run_instance(kind: str, count: int) -> None:
    """The child's part: measure one instance, a JSON line for each result."""
    for line in Instance(kind, load_schedule()).measure(count):
        print(json.dumps(line), flush=True)


def spawn(kind: str, count: int) -> list[dict[str, Any]]:
    """Run one instance in a process of its own; its lines, or one that says how it failed."""
    began = time.monotonic()
    command = [sys.executable, __file__, "--instance", kind, "--count", str(count)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    except subprocess.TimeoutExpired:
        return [{"kind": kind, "failed": "400 s were not enough"}]
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")
    ]
    if done.returncode:
        lines.append({"kind": kind, "failed": done.stderr[-1500:]})
    lines.append({"kind": kind, "seconds": round(time.monotonic() - began, 1)})
    return lines


def main() -> None:
    """Measure all instances, or the one named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instance", help="one of them, in this process")
    parser.add_argument("--count", type=int, default=40, help="batches a path")
    parser.add_argument("--jobs", type=int, default=8, help="processes at once")
    parser.add_argument("--few", action="store_true", help="only one decode instance and the other paths")
    arguments = parser.parse_args()
    if arguments.instance:
        run_instance(arguments.instance, arguments.count)
        return
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    print(json.dumps({"gpu": torch.cuda.get_device_name(0), "sms": sms}), flush=True)
    kinds = [*OTHERS[:4], *(DECODE[:1] if arguments.few else DECODE), *OTHERS[4:]]
    table: dict[str, list[int]] = {}
    counts = {"batches": 0, "equal": 0, "differ": 0, "failed": 0}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for lines in pool.map(lambda kind: spawn(kind, arguments.count), kinds):
            for line in lines:
                print(json.dumps(line), flush=True)
                if "blocks_per_sm" in line:
                    table[json.dumps(line["key"])] = list(line["blocks_per_sm"].values())
                if "equal" in line:
                    counts["batches"] += 1
                    counts["equal" if line["equal"] else "differ"] += 1
                counts["failed"] += "failed" in line
    print(json.dumps({"summary": counts, "blocks_per_sm": table}), flush=True)


if __name__ == "__main__":
    main()
