def to_frames(messages, most):
    """messages: list, each an int (a message) or a list (a batch, in
    which there may be batches); most: int >= 1.

    Returns the frames, a list of ints and lists of ints.
    """
    raise NotImplementedError
