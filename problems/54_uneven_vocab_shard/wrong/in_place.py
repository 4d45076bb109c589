def partial_embedding(ids, shard, vocab_size, rank, tp_size):
    share = -(-vocab_size // tp_size)
    first = share * rank
    end = min(first + share, vocab_size)
    outside = (ids < first) | (ids >= end)
    ids -= first
    ids[outside] = 0
    return shard[ids].masked_fill(outside.unsqueeze(1), 0)
