from pathlib import Path
from typing import Any

import pytest
import torch

from minisgl.core import Req, SamplingParams, get_global_ctx
from minisgl.distributed import DistributedInfo, try_get_tp_info
from minisgl.engine import EngineConfig
from minisgl.engine import engine as engine_module
from minisgl.utils.device import free_memory, new_event, new_stream, pin, synchronize, use_stream, wait_stream
from tests.minisgl.greedy import build_engine, generate, prepare


def test_pages_fill_the_memory_that_is_left(tiny_qwen3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token_bytes = 2 * 3 * 2 * 64 * 4
    monkeypatch.setattr(engine_module, "free_memory", lambda device: 100 * token_bytes)
    engine = build_engine(tiny_qwen3, page_size=4, num_page_override=None, memory_ratio=0.5)
    # Half of 100 tokens is 12 pages of 4; one of them is the dummy page.
    assert engine.num_pages == 11
    assert engine.ctx.kv_cache.num_pages == 12
    assert engine.max_seq_len == 44
    engine.shutdown()

    monkeypatch.setattr(engine_module, "CPU_POOL_BYTES", 20 * token_bytes)
    engine = build_engine(tiny_qwen3, page_size=4, num_page_override=None, memory_ratio=0.5)
    assert engine.num_pages == 4
    engine.shutdown()

    monkeypatch.setattr(engine_module, "free_memory", lambda device: 4 * token_bytes)
    with pytest.raises(RuntimeError, match=r"no memory for the KV pool.*num_page_override"):
        build_engine(tiny_qwen3, page_size=4, num_page_override=None)


def test_a_row_is_a_whole_number_of_pages(tiny_qwen3: Path) -> None:
    engine = build_engine(tiny_qwen3, page_size=16, max_seq_len_override=50)
    assert engine.max_seq_len == 50
    assert engine.page_table.shape == (9, 64)
    assert set(engine.page_table[8].tolist()) == {engine.num_pages * 16}
    assert engine.dummy_req.table_idx == 8


def test_an_engine_that_cannot_be_built_leaves_the_process_clean(tiny_qwen3: Path, tmp_path: Path) -> None:
    for folder, settings in (
        (tmp_path, {}),
        (tiny_qwen3, {"backend": "flash"}),
        (tiny_qwen3, {"max_seq_len_override": 10_000}),
    ):
        with pytest.raises((ValueError, FileNotFoundError)):
            build_engine(folder, **settings)
        assert try_get_tp_info() is None
    engine = build_engine(tiny_qwen3)
    assert get_global_ctx() is engine.ctx
    engine.shutdown()
    with pytest.raises(RuntimeError, match="no context yet"):
        get_global_ctx()


@pytest.mark.parametrize(
    "wrong", [{"page_size": 0}, {"max_running_req": 0}, {"num_page_override": 0}, {"memory_ratio": 1.5}]
)
def test_settings_out_of_range_are_named(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=f"EngineConfig.{name}="):
        EngineConfig("m", DistributedInfo(0, 1), torch.float32, **wrong)


def test_a_forward_moves_requests_on(tiny_qwen3: Path) -> None:
    engine = build_engine(tiny_qwen3)
    engine.page_table[0, :8] = torch.arange(8)
    req = Req(torch.tensor([5, 6, 7], dtype=torch.int32), 0, 0, 4, 0, SamplingParams(), None)
    batch = prepare(engine, "prefill", [req])
    out = engine.forward_batch(batch, engine.sampler.prepare(batch))
    assert (req.cached_len, req.device_len) == (3, 4)
    assert out.next_tokens_cpu.dtype == torch.int32
    assert out.next_tokens.tolist() == out.next_tokens_cpu.tolist()
    assert out.copy_done.query()


def test_seeded_sampling_does_not_depend_on_company(tiny_qwen3: Path) -> None:
    prompts = [[40, 71, 82], [9, 8, 7, 6], [5]]
    params = [SamplingParams(temperature=1.0, seed=seed, top_p=0.95) for seed in (1, 2, 3)]
    engine = build_engine(tiny_qwen3, page_size=4)
    together = generate(engine, prompts, 12, params=params)
    alone = [generate(engine, [p], 12, params=[s])[0] for p, s in zip(prompts, params, strict=True)]
    assert together == alone
    greedy = generate(engine, prompts, 12)
    assert all(a != b for a, b in zip(together, greedy, strict=True))


def test_bfloat16_runs_as_well(tiny_qwen3: Path) -> None:
    engine = build_engine(tiny_qwen3, backend="fi", page_size=4, dtype=torch.bfloat16)
    tokens = generate(engine, [[40, 71, 82, 303, 9]], 8)[0]
    assert engine.ctx.kv_cache.dtype == torch.bfloat16
    assert len(tokens) == 8


def test_the_cpu_knows_the_devices_words() -> None:
    cpu = torch.device("cpu")
    assert pin(cpu) is False
    assert new_stream(cpu) is None
    with use_stream(None):
        wait_stream(None, None)
    event = new_event(cpu)
    event.record()
    event.synchronize()
    assert event.query()
    synchronize(cpu)
    assert free_memory(cpu) > 0
