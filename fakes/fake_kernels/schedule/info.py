"""What a schedule is told about (`Batch`) and what it says (`PlanInfo`): plain numbers, no tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

Planner = Literal["dec", "tc", "fa2", "fa3", "persistent"]
"""CUDA-core decode, tensor-core decode and fa2 prefill (one planner), fa3 prefill, BatchAttention."""

_SHOWN = 24


@dataclass(frozen=True)
class Batch:
    """One batch as a planner sees it.

    qo_lens: new tokens of each request (decode: q tokens a request). kv_pages: its pages. kv_lens: its KV
    tokens as the planner gets them. head_dim is that of Q and K, head_dim_vo that of V and O (None: the same).
    dtype: "float16", "bfloat16", "float32". cuda_graph: planned for replay; max_rows is then the most q rows
    that a plan of this wrapper may have (None: those of this batch).
    fixed_split_pages: -1, or pages a chunk. uniform_q_len: 0, or the promise that every request has so many rows.
    built_for: in words, what else the kernel was compiled for ("ALIBI", a JIT variant); such kernels were not measured.
    """

    qo_lens: tuple[int, ...]
    kv_pages: tuple[int, ...]
    kv_lens: tuple[int, ...]
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    page_size: int
    head_dim_vo: int | None = None
    dtype: str = "float16"
    causal: bool = False
    window_left: int = -1
    soft_cap: bool = False
    cuda_graph: bool = False
    max_rows: int | None = None
    fixed_split_pages: int = -1
    disable_split_kv: bool = False
    uniform_q_len: int = 0
    built_for: str = ""

    @property
    def size(self) -> int:
        """Requests."""
        return len(self.qo_lens)

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.num_qo_heads // self.num_kv_heads

    @property
    def vo(self) -> int:
        """head_dim of V and O."""
        return self.head_dim if self.head_dim_vo is None else self.head_dim_vo

    @property
    def rows(self) -> int:
        """q rows that the planner reserves for."""
        return sum(self.qo_lens) if self.max_rows is None else self.max_rows

    def starts(self, lengths: tuple[int, ...]) -> list[int]:
        """Running sum from 0, without the total."""
        return [0, *accumulate(lengths)][:-1]


@dataclass(frozen=True)
class WorkItem:
    """One piece of work.

    q_tile counts tiles of the request, `rows` are their packed rows [first, end): row * group + head of the
    group (fa3: plain rows of one head). kv: tokens [start, end) of the request.
    head: the KV head (fa3: the query head), None when every head does the same in a block of its own.
    cta: the persistent block that does it; None on dec, tc and fa2, where item i is blockIdx.x = i and the
    hardware places the block.
    """

    request: int
    q_tile: int
    rows: tuple[int, int]
    kv: tuple[int, int]
    head: int | None = None
    cta: int | None = None


@dataclass(frozen=True)
class PlanInfo:
    """A schedule, described and not executed. None where it is unknown; `unknown` then says why.

    blocks_per_sm: blocks of the kernel on one SM. q_tile: packed rows of a query tile (fa3: rows; BatchAttention:
    of its two tiles the larger one, requests of at most 16 packed rows use 16).
    kv_chunk: tokens of a chunk of KV (BatchAttention: the larger of its two, `steps` has both); None with split_kv False:
    all of a request in one chunk.
    split_kv: whether results go through partial states in the float workspace and are merged (under dec, tc and fa2
    then all rows do, also those of one chunk). merged_states: partial states (one vector and one LSE for a row and
    a query head) of each request that are merged. padded_batch_size: blocks launched for each KV head.
    float_bytes, int_bytes: the least workspaces that don't overflow.
    work: the items, in launch order or by CTA. vector: what the library's plan returns. arrays: what it writes into
    the int workspace, as (name, offset in bytes, values). steps: how it came to be, each with its source.
    """

    path: Planner
    num_sms: int
    blocks_per_sm: int | None
    q_tile: int | None
    kv_chunk: int | None
    split_kv: bool | None
    merged_states: tuple[int, ...] | None
    padded_batch_size: int | None
    float_bytes: int | None
    int_bytes: int | None
    work: tuple[WorkItem, ...] = field(repr=False)
    vector: tuple[int, ...] = field(repr=False)
    arrays: tuple[tuple[str, int, tuple[int, ...]], ...] = field(repr=False)
    steps: tuple[str, ...] = ()
    unknown: str | None = None

    @property
    def total_merged_states(self) -> int | None:
        """Partial states of the whole batch that are merged."""
        return None if self.merged_states is None else sum(self.merged_states)

    def of_cta(self, cta: int) -> tuple[WorkItem, ...]:
        """What one persistent CTA does, in order."""
        return tuple(item for item in self.work if item.cta == cta)

    def __str__(self) -> str:
        """The schedule as a table; at most 24 items are listed."""
        lines = [
            f"path              {self.path}",
            f"SMs               {self.num_sms}, blocks per SM {_told(self.blocks_per_sm)}",
            f"query tile        {_told(self.q_tile)} rows",
            f"KV chunk          {self._chunk()}",
            f"padded batch      {_told(self.padded_batch_size)}",
            f"merged states     {_told(self.total_merged_states)}",
            f"workspace         float {_told(self.float_bytes)} B, int {_told(self.int_bytes)} B",
        ]
        if self.unknown is not None:
            lines.append(f"unknown           {self.unknown}")
        lines += [f"step              {step}" for step in self.steps]
        if self.work:
            lines.append("  item request q_tile        rows               kv  head   cta")
        for i, item in enumerate(self.work[:_SHOWN]):
            rows, kv = f"[{item.rows[0]}, {item.rows[1]})", f"[{item.kv[0]}, {item.kv[1]})"
            head = "all" if item.head is None else item.head
            cta = "-" if item.cta is None else item.cta
            lines.append(f"{i:6} {item.request:7} {item.q_tile:6} {rows:>11} {kv:>16} {head:>5} {cta:>5}")
        if len(self.work) > _SHOWN:
            lines.append(f"  and {len(self.work) - _SHOWN} more")
        return "\n".join(lines)

    def _chunk(self) -> str:
        if self.split_kv is None:
            return "unknown"
        if not self.split_kv:
            return "not split"
        return f"{_told(self.kv_chunk)} tokens"


def _told(value: object) -> str:
    return "unknown" if value is None else str(value)
