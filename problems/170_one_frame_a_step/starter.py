def receive(rank, io):
    """The messages of this rank's next step, list[int].

    rank: int.
    io: .drain() and .publish(messages) on rank 0, .next_frame() and
    .waiting() on the others; its calls are
    recorded.
    """
    raise NotImplementedError
