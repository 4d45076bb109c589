"""What the checker derives from an answer to problem 313: tokens drawn by its own fake of FlashInfer's sampler are
tokens that the answer keeps."""

from functools import lru_cache

import torch
from flashinfer.sampling import top_k_top_p_sampling_from_probs

from judge.core.verdict import Mismatch

DRAWS = 64


@lru_cache(64)
def drawn(probs, k, p, order):
    rows = torch.tensor(probs).expand(DRAWS, -1).contiguous()
    return set(
        top_k_top_p_sampling_from_probs(rows, k, p, filter_apply_order=order, seed=7, offset=0).tolist()
    )


def check(inputs, got, want):
    answer = got.get("result")
    if not isinstance(answer, torch.Tensor) or answer.shape != inputs["probs"].shape:
        return []
    given = (tuple(inputs["probs"].tolist()), inputs["k"], inputs["p"], inputs["order"])
    lost = sorted(t for t in drawn(*given) if not answer[t] > 0)
    return [Mismatch("value", f"result[{t}]", {"expected": "sampled", "got": "0"}) for t in lost[:1]]
