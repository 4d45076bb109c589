"""What the checker derives from an answer to problem 206: the fake FlashInfer, planned and run on the same pages, says
whether the numbers are those of a real kernel."""

import torch
from flashinfer import BatchDecodeWithPagedKVCacheWrapper


def kernel(inputs):
    """The fake decode wrapper's result, float32 [B, heads, head_dim]."""
    q, k_pool, v_pool = inputs["q"], inputs["k_pool"], inputs["v_pool"]
    ones = torch.ones(len(q), dtype=torch.int32)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 22, dtype=torch.uint8), "NHD")
    sizes = (q.shape[1], k_pool.shape[1], q.shape[2], 1)
    wrapper.plan(inputs["indptr"], inputs["indices"], ones, *sizes, q_data_type=torch.float32)
    return wrapper.run(q, (k_pool[:, None], v_pool[:, None]))


def check(inputs, got, want):
    """Nothing beyond the values, which are compared anyway: what the kernel says about them is in `invariants`."""
    return []


def invariants(inputs, got):
    """Rules that every right answer keeps, and this one breaks."""
    if bool(got["result"].isnan().any()):
        yield {"zh": "输出里不该有 NaN", "en": "there must be no NaN in the output"}
    if got["result"].shape == inputs["q"].shape and not torch.allclose(
        got["result"], kernel(inputs), rtol=0.0, atol=1e-3
    ):
        yield {
            "zh": "FlashInfer 的（假）decode 内核在同样的页上算出的不一样",
            "en": "FlashInfer's (fake) decode kernel gives other numbers on the same pages",
        }
