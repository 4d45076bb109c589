def until_stop(pieces, stops):
    """pieces: list[str], text as it comes;
    stops: list[str], none empty.

    Returns sent (list[str], what may be sent after each piece and at
    the end) and stopped (bool).
    """
    raise NotImplementedError
