"""Kernels: torch's against plain loops, the compiled ones against torch's (where there is a GPU), and what
happens where they cannot be compiled."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from minisgl import kernel
from minisgl.kernel import TORCH_OPS, KernelBuildError, Ops, cuda_ext, embedding_lookup, ops_for, store_kv

GPU = torch.cuda.is_available()
needs_gpu = pytest.mark.skipif(not GPU, reason="compares compiled kernels: needs an NVIDIA GPU")


@pytest.fixture(autouse=True)
def _choose_anew() -> Iterator[None]:
    """Which implementation runs is chosen once a process; a test's choice is its own."""
    ops_for.cache_clear()
    yield
    ops_for.cache_clear()


def new_kv(
    tokens: int, heads: int, dim: int, dtype: torch.dtype, device: str = "cpu"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values as the model has them: k dense, v a part of the merged projection."""
    generator = torch.Generator().manual_seed(tokens)
    qkv = torch.randn(tokens, 4 * heads, dim, generator=generator).to(device, dtype)
    return qkv[:, 2 * heads : 3 * heads].contiguous(), qkv[:, 3 * heads :]


def test_every_token_lands_in_its_place() -> None:
    k_cache, v_cache = torch.zeros(2, 5, 4, 3, 8).unbind(0)
    k, v = new_kv(6, 3, 8, torch.float32)
    places = [19, 0, 7, 4, 11, 10]
    store_kv(k_cache, v_cache, torch.tensor(places, dtype=torch.int32), k, v)
    for token, place in enumerate(places):
        assert torch.equal(k_cache[place // 4, place % 4], k[token])
        assert torch.equal(v_cache[place // 4, place % 4], v[token])
    untouched = [place for place in range(20) if place not in places]
    assert not k_cache.flatten(0, 1)[untouched].any()


def test_ids_of_other_ranks_give_zeros() -> None:
    weight = torch.randn(4, 6)
    ids = torch.tensor([9, 5, 0, 8, 12], dtype=torch.int32)
    rows = embedding_lookup(weight, ids, (5, 9))
    assert torch.equal(rows[[1, 3]], weight[[0, 3]])
    assert not rows[[0, 2, 4]].any()
    assert torch.equal(embedding_lookup(weight, ids[2:3]), weight[:1])


def test_the_cpu_runs_torch() -> None:
    assert ops_for("cpu") is TORCH_OPS


@pytest.mark.skipif(GPU, reason="where there is a GPU the kernels can be built")
def test_without_a_compiler_torch_runs_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))  # whatever this machine has, it is not seen
    monkeypatch.delenv("CUDA_HOME", raising=False)
    with caplog.at_level(logging.WARNING):
        assert ops_for("cuda") is TORCH_OPS
    assert "store_kv and embedding_lookup run in plain torch: our CUDA kernels cannot be built" in caplog.text
    with caplog.at_level(logging.WARNING):
        ops_for("cuda")
    assert len(caplog.records) == 1, "said once, not at every step"


def test_they_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("MINISGL_CUDA_EXT", "0")
    assert ops_for("cuda") is TORCH_OPS
    assert "MINISGL_CUDA_EXT switches our CUDA kernels off" in caplog.text


@pytest.mark.skipif(GPU, reason="once the kernels are loaded nothing is built again")
def test_other_faults_are_not_taken_for_a_missing_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path) -> None:
        raise TypeError("a fault of ours")

    monkeypatch.setattr(cuda_ext, "build", broken)
    with pytest.raises(TypeError, match="a fault of ours"):
        kernel.ops_for("cuda")


def test_the_build_is_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "builds"))
    first = cuda_ext.build_folder()
    assert first.parent == tmp_path / "builds"
    sources = tmp_path / "csrc"
    sources.mkdir()
    for name in (*cuda_ext.NAMES, *cuda_ext.HEADERS):
        (sources / name).write_bytes((cuda_ext.SOURCES / name).read_bytes())
    monkeypatch.setattr(cuda_ext, "SOURCES", sources)
    assert cuda_ext.build_folder() == first
    (sources / "launch.h").write_text("// another\n")
    assert cuda_ext.build_folder() != first


def test_every_source_is_built() -> None:
    assert {file.name for file in cuda_ext.SOURCES.iterdir()} == {*cuda_ext.NAMES, *cuda_ext.HEADERS}


def test_a_builder_that_takes_too_long_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = "import fcntl, sys, time\nf = open(sys.argv[1], 'w')\nfcntl.flock(f, fcntl.LOCK_EX)\nprint(flush=True)\n"
    other = subprocess.Popen(
        [sys.executable, "-c", hold + "time.sleep(60)", str(tmp_path / "builder")], stdout=subprocess.PIPE
    )
    try:
        assert other.stdout is not None
        other.stdout.readline()
        monkeypatch.setattr(cuda_ext, "WAIT_SECONDS", 0.3)
        begun = time.monotonic()
        with pytest.raises(KernelBuildError, match="another process has been building"):
            cuda_ext.build(tmp_path)
        assert time.monotonic() - begun < 30
    finally:
        other.kill()
        other.wait()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Ops:
    os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(tmp_path_factory.mktemp("extensions")))
    return cuda_ext.load_ops()


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("heads", "dim", "page_size"), [(2, 64, 1), (8, 128, 4), (1, 72, 16), (3, 5, 1), (1, 1, 1)]
)
@pytest.mark.parametrize("tokens", [0, 1, 7, 1000])
def test_compiled_store_is_torchs(
    compiled: Ops, tokens: int, heads: int, dim: int, page_size: int, dtype: torch.dtype
) -> None:
    shape = (2, 1024 // page_size, page_size, heads, dim)
    k, v = new_kv(tokens, heads, dim, dtype, "cuda")
    out_loc = torch.randperm(1024, dtype=torch.int32)[:tokens].cuda()
    caches = [torch.zeros(shape, dtype=dtype, device="cuda") for _ in range(2)]
    for cache, ops in zip(caches, (TORCH_OPS, compiled), strict=True):
        ops.store_kv(cache[0], cache[1], out_loc, k, v)
    assert torch.equal(*caches)


@needs_gpu
def test_they_are_loaded_once_a_process(compiled: Ops, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(folder: Path) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr(cuda_ext, "build", again)
    assert cuda_ext.load_ops() == compiled


@needs_gpu
def test_compiled_store_takes_views(compiled: Ops) -> None:
    qkv = torch.randn(9, 12, 64, device="cuda")
    k, v = qkv[:, 4:8], qkv.transpose(0, 1).contiguous().transpose(0, 1)[:, 8:]
    out_loc = torch.arange(9, dtype=torch.int32, device="cuda")
    caches = [torch.zeros(2, 16, 1, 4, 64, device="cuda") for _ in range(2)]
    for cache, ops in zip(caches, (TORCH_OPS, compiled), strict=True):
        ops.store_kv(cache[0], cache[1], out_loc, k, v)
    assert torch.equal(*caches)


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("hidden", [64, 1024, 7])
@pytest.mark.parametrize("vocab_range", [None, (100, 600)])
def test_compiled_lookup_is_torchs(
    compiled: Ops, hidden: int, vocab_range: tuple[int, int] | None, dtype: torch.dtype
) -> None:
    weight = torch.randn(500, hidden, device="cuda").to(dtype)
    for tokens in (0, 1, 333):
        high = 500 if vocab_range is None else 1000
        ids = torch.randint(high, (tokens,), dtype=torch.int32, device="cuda")
        wanted = TORCH_OPS.embedding_lookup(weight, ids, vocab_range)
        assert torch.equal(compiled.embedding_lookup(weight, ids, vocab_range), wanted)


@needs_gpu
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out_loc": torch.zeros(3, dtype=torch.int64)}, "out_loc should be contiguous int32"),
        ({"k": torch.zeros(2, 4, 64)}, r"k should be \[tokens, heads, head_dim\] = \[3, 4, 64\]"),
        ({"v": torch.zeros(3, 4, 64, dtype=torch.bfloat16)}, "v is BFloat16, the cache Float"),
        ({"v_cache": torch.zeros(16, 2, 4, 64)}, "k_cache and v_cache should be alike"),
        ({"k_cache": torch.zeros(16, 4, 64)}, "k_cache should be contiguous"),
    ],
)
def test_what_does_not_fit_is_refused(compiled: Ops, changes: dict[str, torch.Tensor], message: str) -> None:
    tensors = {
        "k_cache": torch.zeros(16, 1, 4, 64),
        "v_cache": torch.zeros(16, 1, 4, 64),
        "out_loc": torch.zeros(3, dtype=torch.int32),
        "k": torch.zeros(3, 4, 64),
        "v": torch.zeros(3, 4, 64),
    }
    given = {name: tensor.cuda() for name, tensor in {**tensors, **changes}.items()}
    with pytest.raises(ValueError, match=message):
        compiled.store_kv(**given)


@needs_gpu
def test_a_tensor_on_the_wrong_side_is_refused(compiled: Ops) -> None:
    with pytest.raises(ValueError, match="ids is on cpu, weight on cuda:0"):
        compiled.embedding_lookup(torch.zeros(4, 8, device="cuda"), torch.zeros(2, dtype=torch.int32))
    ids = torch.zeros(2, dtype=torch.int32, device="cuda")
    with pytest.raises(ValueError, match=r"vocab_range \[0, 5\] does not fit the 4 rows"):
        compiled.embedding_lookup(torch.zeros(4, 8, device="cuda"), ids, (0, 5))
