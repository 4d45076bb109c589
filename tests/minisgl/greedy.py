"""Greedy generation with an engine and no scheduler: the shortest honest way from prompts to tokens.

Pages are handed out in shuffled order, so that nothing works by accident of neighbouring places.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import torch

from minisgl.attention.utils import make_positions
from minisgl.core import Batch, Phase, Req, SamplingParams
from minisgl.distributed import DistributedInfo
from minisgl.engine import Engine, EngineConfig
from minisgl.scheduler.table import TableManager
from minisgl.utils.misc import div_ceil

Prompts = Sequence[Sequence[int]]


def build_engine(folder: Path, backend: str = "torch", page_size: int = 1, **settings: object) -> Engine:
    """A float32 engine on the CPU with room for 8 requests of 128 tokens."""
    config = {
        "tp_info": DistributedInfo(0, 1),
        "dtype": torch.float32,
        "device": torch.device("cpu"),
        "max_running_req": 8,
        "num_page_override": 8 * 128 // page_size,
        "max_seq_len_override": 128,
        **settings,
    }
    return Engine(
        EngineConfig(model_path=str(folder), attention_backend=backend, page_size=page_size, **config)
    )


def prepare(engine: Engine, phase: Phase, reqs: list[Req], padding: int = 0) -> Batch:
    """A batch with everything the forward reads; `padding` dummies behind the real requests."""
    batch = Batch(reqs=reqs, phase=phase)
    batch.padded_reqs = reqs + [engine.dummy_req] * padding
    batch.positions = make_positions(batch.padded_reqs, engine.device)
    new_ids = torch.cat([req.input_ids[req.cached_len : req.device_len] for req in batch.padded_reqs])
    batch.input_ids = new_ids.to(engine.device)
    batch.out_loc = torch.cat(
        [engine.page_table[req.table_idx, req.cached_len : req.device_len] for req in batch.padded_reqs]
    )
    engine.attn_backend.prepare_metadata(batch)
    return batch


def generate(
    engine: Engine,
    prompts: Prompts,
    new_tokens: int,
    *,
    cached_lens: Sequence[int] | None = None,
    padding: int = 0,
    params: Sequence[SamplingParams] | None = None,
) -> list[list[int]]:
    """Tokens generated for each prompt, all of them in one batch.

    cached_lens: so many tokens of each prompt are computed by a prefill of their own before the rest is.
    """
    page_size = engine.config.page_size
    pages = list(range(engine.num_pages))
    random.Random(20).shuffle(pages)
    table = TableManager(engine.config.max_running_req, engine.page_table)
    rows = []
    for prompt in prompts:
        row = table.allocate()
        mine = [pages.pop() * page_size for _ in range(div_ceil(len(prompt) + new_tokens, page_size))]
        table.write_pages(row, 0, torch.tensor(mine, dtype=torch.int32), page_size)
        rows.append(row)

    def request(index: int, length: int, cached_len: int) -> Req:
        return Req(
            input_ids=torch.tensor(list(prompts[index][:length]), dtype=torch.int32),
            table_idx=rows[index],
            cached_len=cached_len,
            output_len=new_tokens,
            uid=index,
            sampling_params=params[index] if params else SamplingParams(),
            cache_handle=None,
        )

    cached = list(cached_lens) if cached_lens else [0] * len(prompts)
    first = [request(index, length, 0) for index, length in enumerate(cached) if length]
    if first:
        batch = prepare(engine, "prefill", first)
        engine.forward_batch(batch, engine.sampler.prepare(batch))
    reqs = [request(index, len(prompt), cached[index]) for index, prompt in enumerate(prompts)]
    phase: Phase = "prefill"
    out: list[list[int]] = [[] for _ in prompts]
    for _ in range(new_tokens):
        batch = prepare(engine, phase, reqs, padding if phase == "decode" else 0)
        result = engine.forward_batch(batch, engine.sampler.prepare(batch))
        result.copy_done.synchronize()
        for req, token in zip(reqs, result.next_tokens_cpu, strict=True):
            req.append_host(token.view(1))
            out[req.uid].append(int(token))
        phase = "decode"
    return out
