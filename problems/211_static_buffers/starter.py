def replay(static, graph, batch, dummy_slot):
    """Logits of this batch, float32 [B, 3], that stay as they are.

    static: dict of ids, positions, out_loc int32 [N], logits float32
    [N, 3]. graph: has replay().
    batch: dict of ids, positions, out_loc int32 [B]. dummy_slot: int.
    """
    raise NotImplementedError
