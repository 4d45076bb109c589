def hit_rate(prompts, page_size):
    """(hits: list[int], rate: float). prompts: list of lists of int."""
    raise NotImplementedError
