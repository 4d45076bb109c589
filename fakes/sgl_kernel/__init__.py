"""sgl_kernel on the CPU: the part of sglang-kernel 0.4.6 that the course calls, computed by `fake_kernels`.

What is modelled and what isn't: `fakes/README.md`. Nothing here comes from the library.
"""

from sgl_kernel.attention import merge_state_v2
from sgl_kernel.elementwise import (
    fused_add_rmsnorm,
    gelu_and_mul,
    gelu_tanh_and_mul,
    gemma_fused_add_rmsnorm,
    gemma_rmsnorm,
    rmsnorm,
    silu_and_mul,
)
from sgl_kernel.moe import moe_align_block_size, topk_softmax
from sgl_kernel.sampling import top_k_renorm_prob, top_p_renorm_prob

__version__ = "0.4.6+fake"

__all__ = [
    "__version__",
    "fused_add_rmsnorm",
    "gelu_and_mul",
    "gelu_tanh_and_mul",
    "gemma_fused_add_rmsnorm",
    "gemma_rmsnorm",
    "merge_state_v2",
    "moe_align_block_size",
    "rmsnorm",
    "silu_and_mul",
    "top_k_renorm_prob",
    "top_p_renorm_prob",
    "topk_softmax",
]
