def bad_fields(params):
    """params: {temperature, top_k, top_p, min_p, max_tokens}.

    Returns the keys out of range, list[str], in this order.
    """
    raise NotImplementedError
