def partial_embedding(ids, shard, vocab_size, rank, tp_size):
    share = -(-vocab_size // tp_size)
    base, extra = divmod(vocab_size, tp_size)
    first = base * rank + min(rank, extra)
    end = first + base + (rank < extra)
    outside = (ids < first) | (ids >= end)
    rows = (ids - first).masked_fill(outside, 0)
    return shard[rows].masked_fill(outside.unsqueeze(1), 0)
