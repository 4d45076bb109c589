def variant_logits(scores, q_pos, kv_pos, scale, soft_cap, window_left, slope):
    """What softmax gets to see: float32 [n, m], -inf where a query does
    not see a key.

    scores: float32 [n, m], q @ k.
    q_pos: int64 [n], kv_pos: int64 [m], positions in the sequence.
    scale: factor of the scores. soft_cap: 0 for none.
    window_left: how many positions before its own a query
    sees, -1 for all. slope: ALiBi's, 0 for none.
    """
    raise NotImplementedError
