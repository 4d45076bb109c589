def partial_embedding(ids, shard, vocab_size, rank, tp_size):
    share = -(-vocab_size // tp_size)
    first = share * rank
    end = min(first + share, vocab_size)
    outside = (ids < first) | (ids >= end)
    return shard[ids % share]
