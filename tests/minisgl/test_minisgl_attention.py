"""Backends without an engine: metadata for adversarial batches, and attention against a dense reference."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from minisgl.attention import ATTENTION_BACKENDS, HybridBackend, create_attention_backend, resolve_backend
from minisgl.attention.base import BaseAttnBackend
from minisgl.attention.fi import FIMetadata, FlashInferBackend
from minisgl.attention.utils import make_indptr, make_positions
from minisgl.core import Batch, Context, Phase, Req, SamplingParams, get_global_ctx, set_global_ctx
from minisgl.kvcache import create_kvcache_pool
from minisgl.models.config import ModelConfig
from minisgl.utils.registry import Entry, Registry

pytestmark = pytest.mark.usefixtures("single_rank")
CPU = torch.device("cpu")
ROWS, WIDTH = 9, 32
Lengths = Sequence[tuple[int, int, int]]  # row, cached_len, device_len


def config(**changes: object) -> ModelConfig:
    return ModelConfig.from_hf(
        {
            "hidden_size": 64,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 64,
            "vocab_size": 100,
            "max_position_embeddings": 64,
            **changes,
        }
    )


def make_backend(name: str, page_size: int = 1, **changes: object) -> BaseAttnBackend:
    """A backend over a pool in whose pages the rows of the table are scattered."""
    model = config(**changes)
    pages = ROWS * WIDTH // page_size
    pool = create_kvcache_pool(model, pages, page_size, torch.float32, CPU)
    starts = torch.randperm(pages, generator=torch.Generator().manual_seed(1)).int() * page_size
    positions = (starts.unsqueeze(1) + torch.arange(page_size, dtype=torch.int32)).view(ROWS, WIDTH)
    set_global_ctx(Context(page_size, positions, pool))
    return create_attention_backend(name, model, pool)


def make_batch(phase: Phase, lengths: Lengths, backend: BaseAttnBackend) -> Batch:
    reqs = [
        Req(torch.zeros(device_len, dtype=torch.int32), row, cached_len, 4, uid, SamplingParams(), None)
        for uid, (row, cached_len, device_len) in enumerate(lengths)
    ]
    batch = Batch(reqs, phase)
    table = get_global_ctx().page_table
    batch.out_loc = torch.cat([table[req.table_idx, req.cached_len : req.device_len] for req in reqs])
    backend.prepare_metadata(batch)
    return batch


def dense(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, group: int) -> torch.Tensor:
    """Causal attention of the last len(q) of len(keys) tokens, in float64, head by head."""
    n, kv_len = len(q), len(keys)
    out = torch.empty_like(q)
    for head in range(q.shape[1]):
        scores = q[:, head].double() @ keys[:, head // group].double().T * q.shape[-1] ** -0.5
        hidden = torch.arange(kv_len) > torch.arange(kv_len - n, kv_len).unsqueeze(1)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        out[:, head] = (weights @ values[:, head // group].double()).float()
    return out


CASES: list[tuple[Phase, Lengths]] = [
    ("prefill", [(0, 0, 5), (1, 0, 6)]),
    ("prefill", [(7, 3, 5), (2, 5, 6), (5, 0, 8)]),
    ("prefill", [(4, 31, 32)]),
    ("prefill", [(3, 4, 5), (1, 8, 9)]),
    ("prefill", [(3, 0, 4), (1, 8, 12), (0, 7, 9)]),
    ("decode", [(7, 4, 5), (2, 8, 9), (5, 0, 1)]),
]


@pytest.mark.parametrize(("phase", "lengths"), CASES)
@pytest.mark.parametrize(
    ("name", "page_size"), [("torch", 1), ("torch", 4), ("fi", 1), ("fi", 4), ("fa", 1), ("fa", 4)]
)
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_attention_is_that_of_a_dense_reference(
    name: str, page_size: int, phase: Phase, lengths: Lengths, kv_heads: int
) -> None:
    backend = make_backend(name, page_size, num_key_value_heads=kv_heads)
    torch.manual_seed(0)
    history = [
        (torch.randn(device_len, kv_heads, 64), torch.randn(device_len, kv_heads, 64))
        for _, _, device_len in lengths
    ]
    # What is cached gets into the pool the way it does in the engine: by a forward of its own, in both
    # layers.
    earlier = [(row, 0, cached) for row, cached, _ in lengths if cached]
    if earlier:
        batch = make_batch("prefill", earlier, backend)
        kept = [
            (k[:cached], v[:cached])
            for (k, v), (_, cached, _) in zip(history, lengths, strict=True)
            if cached
        ]
        for layer in (0, 1):
            keys, values = (torch.cat(parts) for parts in zip(*kept, strict=True))
            backend.forward(torch.randn(len(keys), 4, 64), keys, values, layer, batch)
    batch = make_batch(phase, lengths, backend)
    new = [(k[cached:], v[cached:]) for (k, v), (_, cached, _) in zip(history, lengths, strict=True)]
    keys, values = (torch.cat(parts) for parts in zip(*new, strict=True))
    for layer in (0, 1):
        q = torch.randn(len(keys), 4, 64)
        got = backend.forward(q, keys, values, layer, batch)
        pieces = got.split([device_len - cached for _, cached, device_len in lengths])
        queries = q.split([device_len - cached for _, cached, device_len in lengths])
        for piece, query, (k, v) in zip(pieces, queries, history, strict=True):
            torch.testing.assert_close(piece, dense(query, k, v, 4 // kv_heads), rtol=1e-4, atol=1e-5)


def fi_metadata(backend: BaseAttnBackend, phase: Phase, lengths: Lengths) -> FIMetadata:
    metadata = make_batch(phase, lengths, backend).attn_metadata
    assert isinstance(metadata, FIMetadata)
    return metadata


@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize(("phase", "lengths"), CASES)
def test_flashinfers_metadata(page_size: int, phase: Phase, lengths: Lengths) -> None:
    backend = make_backend("fi", page_size)
    metadata = fi_metadata(backend, phase, lengths)
    queries = [device_len - cached for _, cached, device_len in lengths]
    kv_lens = [device_len for _, _, device_len in lengths]
    assert metadata.cu_seqlens_q_cpu.tolist() == [sum(queries[:i]) for i in range(len(lengths) + 1)]
    assert metadata.cu_seqlens_k_cpu.tolist() == [sum(kv_lens[:i]) for i in range(len(lengths) + 1)]
    assert torch.equal(metadata.cu_seqlens_q_gpu, metadata.cu_seqlens_q_cpu)
    table = get_global_ctx().page_table
    assert metadata.indices.tolist() == [
        position for row, _, device_len in lengths for position in table[row, :device_len].tolist()
    ]
    assert metadata.last_page_len_cpu.tolist() == [1] * len(lengths)
    assert metadata.seq_lens_cpu.tolist() == kv_lens
    for name in ("cu_seqlens_q_cpu", "cu_seqlens_k_cpu", "indices", "last_page_len_cpu", "seq_lens_cpu"):
        assert getattr(metadata, name).dtype == torch.int32, name
    assert (metadata.num_qo_heads, metadata.num_kv_heads, metadata.head_dim) == (4, 2, 64)
    assert metadata.dtype == torch.float32
    assert metadata.initialized is False


def test_what_makes_the_fast_path_take_the_kv_starts() -> None:
    backend = make_backend("fi")
    miss = fi_metadata(backend, "prefill", [(0, 0, 5), (1, 0, 6)])
    assert miss.cu_seqlens_q_cpu is miss.cu_seqlens_k_cpu
    for lengths in ([(0, 0, 5), (1, 1, 6)], [(0, 1, 5), (1, 0, 6)]):
        assert fi_metadata(backend, "prefill", lengths).cu_seqlens_q_cpu.tolist() != [0, 5, 11]


def test_last_page_lengths_grow_with_the_batch() -> None:
    backend = make_backend("fi")
    assert isinstance(backend, FlashInferBackend)
    small = fi_metadata(backend, "decode", [(0, 3, 4)]).last_page_len_cpu
    large = fi_metadata(backend, "decode", [(row, 3, 4) for row in range(9)]).last_page_len_cpu
    assert (small.tolist(), large.tolist()) == ([1], [1] * 9)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "tensor_cores"), [(4, 4, False), (4, 2, False), (4, 1, True), (8, 1, True)]
)
def test_large_groups_decode_on_tensor_cores(heads: int, kv_heads: int, tensor_cores: bool) -> None:
    backend = make_backend("fi", num_attention_heads=heads, num_key_value_heads=kv_heads)
    assert isinstance(backend, FlashInferBackend)
    assert backend.decode_wrapper.use_tensor_cores is tensor_cores
    assert backend.decode_wrapper._int_workspace_buffer is backend.prefill_wrapper._int_workspace_buffer


def test_backends_by_name() -> None:
    assert resolve_backend("auto", "cpu") == "torch"
    assert resolve_backend("auto", "cuda") == "fa,fi"
    backend = make_backend("fa, fi")
    assert isinstance(backend, HybridBackend)
    assert type(backend.decode_backend) is ATTENTION_BACKENDS.load("fi")
    model, pool = config(), create_kvcache_pool(config(), 4, 1, torch.float32, CPU)
    with pytest.raises(ValueError, match="unknown attention backend 'flash': choose from torch, fi, fa"):
        create_attention_backend("flash", model, pool)
    with pytest.raises(ValueError, match="give one name, or two"):
        create_attention_backend("fa,fi,torch", model, pool)


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [("fi", "flashinfer", "flashinfer-python"), ("fa", "sgl_kernel.flash_attn", "sgl_kernel")],
)
def test_kernels_that_are_not_installed(
    name: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    pool = create_kvcache_pool(config(), 4, 1, torch.float32, CPU)
    with pytest.raises(ImportError, match=f"attention backend '{name}' needs the package {package}.*'torch'"):
        create_attention_backend(name, config(), pool)


def test_a_name_of_a_later_chapter_says_which() -> None:
    registry = Registry(
        "thing",
        {
            "later": Entry("minisgl.nothing.here:Thing", 21),
        },
    )
    with pytest.raises(
        NotImplementedError, match=r"thing 'later' \(minisgl.nothing.here\) arrives in chapter 21"
    ):
        registry.load("later")


def test_a_module_that_is_there_and_broken_is_not_called_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_written.py").write_text("import a_package_nobody_has\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="a_package_nobody_has"):
        Registry("thing", {"x": Entry("half_written:X", 3)}).load("x")


def test_indptr_and_positions() -> None:
    assert make_indptr([2, 3], CPU).tolist() == [0, 2, 5]
    assert make_indptr([], CPU).tolist() == [0]
    assert make_indptr([1], CPU).dtype == torch.int32
    reqs = [
        Req(torch.zeros(5, dtype=torch.int32), 0, 3, 1, 0, SamplingParams(), None),
        Req(torch.zeros(2, dtype=torch.int32), 1, 0, 1, 1, SamplingParams(), None),
    ]
    positions = make_positions(reqs, CPU)
    assert (positions.tolist(), positions.dtype) == ([3, 4, 0, 1], torch.int32)
