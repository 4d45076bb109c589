def filtered(probs, k, p, order):
    """The distribution that is sampled from: float32 [vocabulary], sums
    to 1.

    probs: float32 [vocabulary], sums to 1. k: at least 1.
    p: above 0, at most 1.
    order: "top_k_first" or "joint".
    """
    raise NotImplementedError
