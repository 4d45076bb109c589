"""Chapter 17: the two GPU backends tell their kernels the truth, plan once a batch, and answer as the
reference does.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
import torch
from fake_kernels.errors import KernelError

from minisgl.attention.fa import FAMetadata, FlashAttentionBackend
from minisgl.attention.fi import FIMetadata, FlashInferBackend
from minisgl.attention.utils import make_positions
from minisgl.core import Batch, Phase, Req, SamplingParams
from minisgl.distributed import DistributedInfo
from minisgl.engine import Engine, EngineConfig

PROMPTS = [[785, 6722, 315, 9625, 374], [16, 488, 220, 16, 284, 220]]
FIRST_POSITIONS = [16, 40]

Build = Callable[..., Engine]


def build_engine(folder: Path, backend: str, page_size: int) -> Engine:
    engine = Engine(
        EngineConfig(
            model_path=str(folder),
            tp_info=DistributedInfo(0, 1),
            dtype=torch.float32,
            device=torch.device("cpu"),
            attention_backend=backend,
            page_size=page_size,
            max_running_req=2,
            num_page_override=64 // page_size,
            max_seq_len_override=32,
        )
    )
    for row, first in enumerate(FIRST_POSITIONS):
        engine.page_table[row, :16] = torch.arange(first, first + 16)
    return engine


@pytest.fixture
def build(model_folder: Path) -> Build:
    return partial(build_engine, model_folder)


def requests(cached_lens: Sequence[int], extra: int = 0) -> list[Req]:
    """The two prompts, each followed by `extra` tokens, with so many of them cached."""
    return [
        Req(
            input_ids=torch.tensor(prompt + [100 + step for step in range(extra)], dtype=torch.int32),
            table_idx=row,
            cached_len=cached_len,
            output_len=4,
            uid=row,
            sampling_params=SamplingParams(),
            cache_handle=None,
        )
        for row, (prompt, cached_len) in enumerate(zip(PROMPTS, cached_lens, strict=True))
    ]


def prepare(engine: Engine, phase: Phase, reqs: list[Req]) -> Batch:
    batch = Batch(reqs=reqs, phase=phase)
    batch.positions = make_positions(reqs, engine.device)
    batch.input_ids = torch.cat([req.input_ids[req.cached_len : req.device_len] for req in reqs])
    batch.out_loc = torch.cat(
        [engine.page_table[req.table_idx, req.cached_len : req.device_len] for req in reqs]
    )
    engine.attn_backend.prepare_metadata(batch)
    return batch


def forward(engine: Engine, batch: Batch) -> torch.Tensor:
    with torch.inference_mode(), engine.ctx.forward_batch(batch):
        return engine.model.forward()


def story(engine: Engine) -> list[torch.Tensor]:
    """Logits of four batches: nothing cached; some cached; one query each, as a prefill; and as a decode."""
    batches: list[tuple[Phase, list[int], int]] = [
        ("prefill", [0, 0], 0),
        ("prefill", [3, 5], 0),
        ("prefill", [4, 5], 0),
        ("decode", [5, 6], 1),
    ]
    return [
        forward(engine, prepare(engine, phase, requests(cached_lens, extra)))
        for phase, cached_lens, extra in batches
    ]


@pytest.fixture(scope="module")
def reference(model_folder: Path) -> list[torch.Tensor]:
    engine = build_engine(model_folder, "torch", 1)
    logits = story(engine)
    engine.shutdown()
    return logits


@pytest.mark.parametrize(("backend", "page_size"), [("fi", 1), ("fi", 4), ("fa", 1), ("fa", 4), ("fa,fi", 4)])
def test_logits_are_those_of_the_reference_backend(
    build: Build, reference: list[torch.Tensor], backend: str, page_size: int
) -> None:
    for got, wanted in zip(story(build(backend, page_size)), reference, strict=True):
        assert torch.equal(got, wanted)


def test_a_batch_is_planned_once_and_run_at_every_layer(build: Build) -> None:
    engine = build("fi", 1)
    layers = engine.config.model_config.num_layers
    backend = engine.attn_backend
    assert isinstance(backend, FlashInferBackend)

    batch = prepare(engine, "prefill", requests([0, 0]))
    assert backend.prefill_wrapper.plan_count == 0, (
        "preparing must not plan: the host may still use the last plan"
    )
    forward(engine, batch)
    forward(engine, prepare(engine, "prefill", requests([3, 5])))
    forward(engine, prepare(engine, "decode", requests([5, 6], extra=1)))

    assert (backend.prefill_wrapper.plan_count, backend.prefill_wrapper.run_count) == (2, 2 * layers)
    assert (backend.decode_wrapper.plan_count, backend.decode_wrapper.run_count) == (1, layers)


def fi_metadata(engine: Engine, phase: Phase, reqs: list[Req]) -> FIMetadata:
    metadata = prepare(engine, phase, reqs).attn_metadata
    assert isinstance(metadata, FIMetadata)
    return metadata


@pytest.mark.parametrize("page_size", [1, 4])
def test_flashinfer_sees_pages_of_one_token_whatever_the_page_size(build: Build, page_size: int) -> None:
    metadata = fi_metadata(build("fi", page_size), "prefill", requests([3, 5]))
    assert metadata.cu_seqlens_q_cpu.tolist() == [0, 2, 3]
    assert metadata.cu_seqlens_k_cpu.tolist() == [0, 5, 11]
    assert metadata.indices.tolist() == [*range(16, 21), *range(40, 46)]
    assert metadata.last_page_len_cpu.tolist() == [1, 1]
    assert metadata.seq_lens_cpu.tolist() == [5, 6]
    for tensor in (metadata.cu_seqlens_q_cpu, metadata.cu_seqlens_k_cpu, metadata.indices):
        assert tensor.dtype == torch.int32


@pytest.mark.parametrize(
    ("phase", "cached_lens", "extra", "qo_indptr"),
    [
        ("prefill", [0, 0], 0, [0, 5, 11]),
        ("prefill", [0, 5], 0, [0, 5, 6]),
        ("prefill", [4, 0], 0, [0, 1, 7]),
        ("prefill", [4, 5], 0, [0, 1, 2]),
        ("decode", [5, 6], 1, [0, 1, 2]),
    ],
)
def test_query_starts_on_and_off_the_fast_paths(
    build: Build, phase: Phase, cached_lens: list[int], extra: int, qo_indptr: list[int]
) -> None:
    engine = build("fi", 1)
    metadata = fi_metadata(engine, phase, requests(cached_lens, extra))
    assert metadata.cu_seqlens_q_cpu.tolist() == qo_indptr
    assert metadata.get_last_indices(2).tolist() == [end - 1 for end in qo_indptr[1:]]
    backend = engine.attn_backend
    assert isinstance(backend, FlashInferBackend)
    expected = backend.decode_wrapper if phase == "decode" else backend.prefill_wrapper
    assert metadata.wrapper is expected


@pytest.mark.parametrize(
    ("page_size", "page_table"),
    [(1, [[*range(16, 22)], [*range(40, 46)]]), (2, [[8, 9, 10], [20, 21, 22]]), (4, [[4, 5], [10, 11]])],
)
def test_flashattention_sees_page_numbers(build: Build, page_size: int, page_table: list[list[int]]) -> None:
    metadata = prepare(build("fa", page_size), "prefill", requests([3, 5])).attn_metadata
    assert isinstance(metadata, FAMetadata)
    assert metadata.cu_seqlens_q.tolist() == [0, 2, 3]
    assert metadata.cache_seqlens.tolist() == [5, 6]
    assert metadata.page_table.tolist() == page_table
    assert metadata.page_table.dtype == metadata.cache_seqlens.dtype == torch.int32


def test_two_names_are_prefill_and_decode(build: Build) -> None:
    engine = build("fa,fi", 4)
    assert isinstance(prepare(engine, "prefill", requests([0, 0])).attn_metadata, FAMetadata)
    assert isinstance(prepare(engine, "decode", requests([5, 6], extra=1)).attn_metadata, FIMetadata)


def test_batches_prepared_one_after_the_other_do_not_share_buffers(build: Build) -> None:
    engine = build("fi", 1)
    first = fi_metadata(engine, "prefill", requests([3, 5]))
    before = [first.cu_seqlens_q_cpu.clone(), first.cu_seqlens_k_cpu.clone(), first.indices.clone()]
    fi_metadata(engine, "prefill", requests([0, 0], extra=4))
    after = [first.cu_seqlens_q_cpu, first.cu_seqlens_k_cpu, first.indices]
    assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))


def drop_the_leading_zero(metadata: FIMetadata) -> None:
    metadata.cu_seqlens_q_cpu = metadata.cu_seqlens_q_cpu[1:].clone()


def last_pages_as_long_as_the_requests(metadata: FIMetadata) -> None:
    metadata.last_page_len_cpu = metadata.seq_lens_cpu


def indices_in_int64(metadata: FIMetadata) -> None:
    metadata.indices = metadata.indices.long()


def indices_outside_the_pool(metadata: FIMetadata) -> None:
    metadata.indices = metadata.indices + 64


@pytest.mark.parametrize(
    "spoil",
    [drop_the_leading_zero, last_pages_as_long_as_the_requests, indices_in_int64, indices_outside_the_pool],
)
def test_the_fakes_refuse_what_the_real_kernel_would_turn_into_garbage(
    build: Build, spoil: Callable[[FIMetadata], None]
) -> None:
    engine = build("fi", 1)
    batch = prepare(engine, "prefill", requests([3, 5]))
    assert isinstance(batch.attn_metadata, FIMetadata)
    spoil(batch.attn_metadata)
    with pytest.raises(KernelError):
        forward(engine, batch)


def test_the_fakes_refuse_positions_in_place_of_page_numbers(build: Build) -> None:
    engine = build("fa", 4)
    batch = prepare(engine, "prefill", requests([3, 5]))
    assert isinstance(batch.attn_metadata, FAMetadata)
    batch.attn_metadata.page_table = batch.attn_metadata.page_table * 4
    with pytest.raises(KernelError):
        forward(engine, batch)
    assert isinstance(engine.attn_backend, FlashAttentionBackend)
