def attention(metadata, wrapper, q, layer):
    """Attention of one layer of the current batch, float32 [B, heads,
    head_dim].

    metadata: dict of this batch: indptr int32 [B+1], indices int32
    [pages], last_page_len int32 [B], planned (bool).
    wrapper: .plan(indptr, indices, last_page_len) and .run(q, layer);
    its calls are recorded.
    q: float32 [B, heads, head_dim]. layer: which layer's pool is read.
    """
    raise NotImplementedError
