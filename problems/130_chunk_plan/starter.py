def chunk_plan(prompts, budget):
    """prompts: list of [prompt_len, cached_len], ints, in tokens, in
    order of arrival; budget: int, tokens a batch.

    Returns the batches: each a list of [request, start, end], request
    being the index in prompts.
    """
    raise NotImplementedError
