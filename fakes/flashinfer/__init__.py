"""flashinfer on the CPU: the real package's interface (0.7.2.post1), computed by `fake_kernels`.

Put `fakes/` first on the path and code written for the library runs without a GPU, told when it is
wrong. What is modelled and what isn't: `fakes/README.md`. Nothing here comes from the library.
"""

from flashinfer.activation import silu_and_mul
from flashinfer.cascade import merge_state
from flashinfer.decode import (
    BatchDecodeWithPagedKVCacheWrapper,
    CUDAGraphBatchDecodeWithPagedKVCacheWrapper,
)
from flashinfer.norm import fused_add_rmsnorm, rmsnorm
from flashinfer.prefill import BatchPrefillWithPagedKVCacheWrapper

__version__ = "0.7.2.post1+fake"

__all__ = [
    "BatchDecodeWithPagedKVCacheWrapper",
    "BatchPrefillWithPagedKVCacheWrapper",
    "CUDAGraphBatchDecodeWithPagedKVCacheWrapper",
    "__version__",
    "fused_add_rmsnorm",
    "merge_state",
    "rmsnorm",
    "silu_and_mul",
]
