def stream(decode, ids):
    """decode: list[int] -> str, the text of tokens;
    ids: list[int], in the order in which they come.

    Returns the pieces: list[str], one a token and a last one when the
    answer is over.
    """
    raise NotImplementedError
