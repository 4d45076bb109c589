def workspace(batches, num_qo_heads, tile, head_dim, capacity):
    """What the plans of some batches need of one float workspace, and
    which allocation fails.

    batches: for each batch, into how many KV chunks each request is cut
    (1: not cut; one query tile a request).
    tile: rows of a query tile. capacity: bytes of the workspace.
    Returns (needed, failing): bytes for each batch;
    "" or the name of the allocation that fails, for each batch.
    """
    raise NotImplementedError
