def next_batch(running, launched):
    """running, launched: lists of [uid, arrival, remain], ints.

    Returns the uids of the next decode batch, list[int].
    """
    raise NotImplementedError
