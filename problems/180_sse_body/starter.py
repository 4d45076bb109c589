def sse_body(pieces, failed):
    """The body of a text/event-stream response, str.

    pieces: list of str, one event each. failed: bool;
    if so there is no [DONE].
    """
    raise NotImplementedError
