def split_tail(data):
    """data: list[int], bytes that have come and not been sent.

    Returns the text to send (str) and the bytes to keep (list[int]).
    """
    raise NotImplementedError
