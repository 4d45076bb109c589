import torch


def partial_embedding(ids, shard, vocab_size, rank, tp_size):
    """ids: int32 [tokens]; shard: float32 [share, hidden]; three ints.

    Returns float32 [tokens, hidden].
    """
    raise NotImplementedError
