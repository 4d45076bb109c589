def token_forwards(prompt_len, new_tokens):
    """prompt_len: int >= 1; new_tokens: int >= 0.

    Returns (naive, cached), ints: tokens that go through the model.
    """
    raise NotImplementedError
