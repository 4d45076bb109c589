def experts_forward(x, weights, experts, gate_up, down):
    """float32 [tokens, hidden].

    x float32 [tokens, hidden];
    weights float32, experts int64 [tokens, top_k];
    gate_up [E, 2 n, hidden], gate first;
    down [E, hidden, n].
    """
    raise NotImplementedError
