def align_blocks(experts, num_experts, block):
    """(sorted_ids: list[int], block_experts: list[int]).
    experts: list of lists of int, [tokens][top_k].
    """
    raise NotImplementedError
