def stack_experts(tensors, num_experts, rank, size):
    """(gate_up float32 [E, 2 n, hidden], down float32 [E, hidden, n])
    of this rank. tensors: dict of float32.
    """
    raise NotImplementedError
