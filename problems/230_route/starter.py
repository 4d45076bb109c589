def route(logits, top_k, renormalize):
    """(weights float32 [tokens, top_k], experts int64 [tokens, top_k]),
    best first. logits: [tokens, E].
    """
    raise NotImplementedError
