def align_down(n, page_size):
    """The largest multiple of page_size that is <= n.
    n: int >= 0, tokens; page_size: int >= 1.

    Returns int, tokens.
    """
    raise NotImplementedError
