def replay(static, graph, batch, dummy_slot):
    size = len(batch["ids"])
    for name in ("ids", "positions", "out_loc"):
        static[name][:size].copy_(batch[name])
    graph.replay()
    return static["logits"][:size].clone()
