def broadcast(io, ranks, messages, attempts):
    """io: .send(text) to all that listen, .poll() for the ranks whose
    answers have come, list[int]; its calls are recorded.
    ranks: int, they are 1 to ranks; messages: list[str];
    attempts: int, most greetings.

    Returns True if all messages were sent, False if not every rank
    answered.
    """
    raise NotImplementedError
