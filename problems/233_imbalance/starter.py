def imbalance(experts, num_experts, ranks):
    """(per_expert: list[int], per_rank: list[int], slowdown: float).
    experts: list of lists, [tokens][top_k].
    """
    raise NotImplementedError
