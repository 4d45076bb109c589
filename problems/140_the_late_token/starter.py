def overlapped(tokens, max_tokens, eos_ids):
    """tokens: list[int], what the device would sample step by step, at
    least max_tokens + 1 of them; max_tokens: int >= 1;
    eos_ids: list[int].

    Returns sent (list[int]), launches (int) and freed_after (int).
    """
    raise NotImplementedError
