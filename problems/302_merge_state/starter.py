def merge_state(v_a, s_a, v_b, s_b):
    """The attention state over both parts of the KV: v float32 [n,
    heads, dim], s float32 [n, heads].

    v_a, v_b: outputs of attention over each part, float32 [n, heads,
    dim].
    s_a, s_b: their LSE in base 2, float32 [n, heads];
    -inf where a part was empty (its output is 0 there).
    """
    raise NotImplementedError
