"""Kernels of our own, in CUDA: compiled by torch's extension loader when they are first needed.

Both operations copy rows to or from places that an index names. In torch each is several kernels (index
arithmetic, a gather or scatter for keys and one for values); here it is one, and every thread moves 16 bytes
at a time. The sources are in csrc/: store_kv.cu and embedding.cu know nothing of torch and compile quickly,
ops.cpp checks tensors and calls them.

A build takes about half a minute and is kept by the hash of its sources; ranks that start together wait for
the one that builds.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from minisgl.env import env_flag
from minisgl.kernel import KernelBuildError, Ops
from minisgl.utils.logger import init_logger

logger = init_logger(__name__)

SOURCES = Path(__file__).parent / "csrc"
NAMES = ("ops.cpp", "store_kv.cu", "embedding.cu")
HEADERS = ("launch.h",)
# For another process's build; one build takes about half a minute.
WAIT_SECONDS = 300.0


def load_ops() -> Ops:
    """The compiled operations, built now unless an earlier process has.

    KernelBuildError if they are switched off (MINISGL_CUDA_EXT=0), there is no CUDA compiler, it fails, or
    another process has been building for longer than WAIT_SECONDS.
    """
    if not env_flag("MINISGL_CUDA_EXT", True):
        raise KernelBuildError("MINISGL_CUDA_EXT switches our CUDA kernels off")
    if not hasattr(torch.ops.minisgl, "store_kv"):  # a second registration would end the process
        build(build_folder())
    return Ops(store_kv, embedding_lookup)


def build_folder() -> Path:
    """Where the build is kept: below TORCH_EXTENSIONS_DIR, or the user's cache, by everything it depends on."""
    content = hashlib.sha256(f"{torch.__version__} {torch.version.cuda}".encode())
    for name in (*NAMES, *HEADERS):
        content.update((SOURCES / name).read_bytes())
    given = os.environ.get("TORCH_EXTENSIONS_DIR")
    root = Path(given) if given else Path.home() / ".cache" / "torch_extensions"
    return root / f"minisgl_{content.hexdigest()[:12]}"


def build(folder: Path) -> None:
    """Compile the sources into `folder` and register the operations with torch."""
    try:
        from torch.utils.cpp_extension import load

        folder.mkdir(parents=True, exist_ok=True)
        with _only_builder(folder):
            # torch's own lock has no deadline, and one left by a process that was killed never goes away.
            # Whoever holds ours is alone, so a lock that lies there is such a one.
            (folder / "lock").unlink(missing_ok=True)
            begun = time.monotonic()
            load(
                name="minisgl_kernels",
                sources=[str(SOURCES / name) for name in NAMES],
                extra_cflags=["-O2"],
                extra_cuda_cflags=["-O3"],
                build_directory=str(folder),
                with_cuda=True,
                is_python_module=False,
            )
            logger.info("CUDA kernels ready after %.1f s (%s)", time.monotonic() - begun, folder)
    except (ImportError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        # What the loader raises for: no setuptools, no CUDA_HOME or nvcc, no ninja, a compiler's error.
        raise KernelBuildError(f"our CUDA kernels cannot be built here ({error})") from error


@contextmanager
def _only_builder(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; RuntimeError if another process keeps it for longer than WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    with (folder / "builder").open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"another process has been building in {folder} for {WAIT_SECONDS:.0f} s"
                    ) from None
                time.sleep(0.1)
        yield  # closing the file releases it


def store_kv(
    k_cache: torch.Tensor, v_cache: torch.Tensor, out_loc: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> None:
    """torch_ops.store_kv in one kernel. k and v may be views whose tokens lie apart (parts of a merged qkv).

    ValueError, from C++, that names the tensor for shapes, dtypes, devices or strides that do not fit. A
    position outside the pool stops the device with an assertion, as torch's indexing does. Of a position
    named twice, the pieces that remain may come from both.
    """
    torch.ops.minisgl.store_kv(k_cache, v_cache, out_loc, _heads_adjacent(k), _heads_adjacent(v))


def _heads_adjacent(x: torch.Tensor) -> torch.Tensor:
    """The kernel copies a token's heads as one row."""
    return x if x.dim() == 3 and x.stride(2) == 1 and x.stride(1) == x.shape[2] else x.contiguous()


def embedding_lookup(
    weight: torch.Tensor, ids: torch.Tensor, vocab_range: tuple[int, int] | None = None
) -> torch.Tensor:
    """torch_ops.embedding_lookup in one kernel. ValueError, from C++, for tensors that do not fit; without
    vocab_range, an id that has no row stops the device with an assertion."""
    first, end = vocab_range if vocab_range is not None else (0, len(weight))
    out: torch.Tensor = torch.ops.minisgl.embedding_lookup(weight, ids, first, end, vocab_range is None)
    return out
