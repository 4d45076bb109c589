def serve(engine, requests, max_running):
    """engine: .prefill(uids), .decode(uids), each list[int] ->
    list[int], a token for each, and .idle(); one call is one step.
    requests: list of [uid, arrival, max_tokens], ints, arrival
    ascending; max_running: int >= 1.

    Returns [[uid, tokens], ...] in the order in which the answers end.
    Token 0 is the end token.
    """
    raise NotImplementedError
