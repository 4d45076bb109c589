def trace(prompt_len, cached_len, output_len):
    """Three ints, in tokens.

    Returns [(phase, cached, device, extend, remain), ...], one a
    forward, before it.
    """
    raise NotImplementedError
