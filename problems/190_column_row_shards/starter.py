def mlp_part(x, up, up_bias, down, down_bias, rank, size):
    """This rank's summand of the MLP, float32 [tokens, hidden].

    x [tokens, hidden], up [inner, hidden], up_bias [inner], down
    [hidden, inner], down_bias [hidden]: float32.
    """
    raise NotImplementedError
