def match(cached, prompt, page_size):
    """cached: list of token sequences, each list[int], whole pages;
    prompt: list[int], at least one token; page_size: int.

    Returns how many of the prompt's tokens need not be computed, int.
    """
    raise NotImplementedError
