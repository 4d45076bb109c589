"""Chapter 19: wherever the kernels run, they do what torch does; where they can't be compiled, torch runs."""

import sys
from pathlib import Path

import pytest
import torch

from minisgl.distributed import DistributedInfo, set_tp_info
from minisgl.kernel import TORCH_OPS, KernelBuildError, cuda_ext, embedding_lookup, ops_for, store_kv
from minisgl.layers.embedding import VocabParallelEmbedding

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize("tokens", [1, 3, 40])
def test_store_kv_writes_what_indexing_writes(tokens: int, page_size: int) -> None:
    qkv = torch.randn(tokens, 8, 64, device=DEVICE)
    k, v = qkv[:, 4:6], qkv[:, 6:]
    out_loc = torch.randperm(64, device=DEVICE)[:tokens].int()
    pool = torch.zeros(2, 64 // page_size, page_size, 2, 64, device=DEVICE)
    store_kv(pool[0], pool[1], out_loc, k, v)
    flat = pool.flatten(1, 2)
    assert torch.equal(flat[0, out_loc.long()], k)
    assert torch.equal(flat[1, out_loc.long()], v)
    others = torch.ones(64, dtype=torch.bool, device=DEVICE)
    others[out_loc.long()] = False
    assert not flat[:, others].any()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_rows_add_up_to_the_embedding(size: int) -> None:
    weight = torch.randn(10, 16, device=DEVICE)
    ids = torch.tensor([0, 9, 4, 5, 3, 6], dtype=torch.int32, device=DEVICE)
    share = -(-10 // size)
    total = torch.zeros(6, 16, device=DEVICE)
    for first in range(0, 10, share):
        total += embedding_lookup(weight[first : first + share], ids, (first, min(first + share, 10)))
    assert torch.equal(total, weight[ids.long()])


def test_the_embedding_layer_uses_it() -> None:
    set_tp_info(DistributedInfo(0, 1))
    layer = VocabParallelEmbedding(7, 8)
    layer.weight = torch.randn(7, 8, device=DEVICE)
    ids = torch.tensor([6, 0, 6], dtype=torch.int32, device=DEVICE)
    assert torch.equal(layer.forward(ids), layer.weight[ids.long()])


@pytest.mark.skipif(DEVICE.type == "cuda", reason="where there is a GPU the kernels can be built")
def test_without_a_gpu_torch_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    assert ops_for("cpu") is TORCH_OPS
    with pytest.raises(KernelBuildError, match="our CUDA kernels cannot be built here"):
        cuda_ext.load_ops()


def test_the_sources_came_along() -> None:
    for name in (*cuda_ext.NAMES, *cuda_ext.HEADERS):
        assert (cuda_ext.SOURCES / name).is_file()
