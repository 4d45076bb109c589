def align_blocks(experts, num_experts, block):
    flat = [expert for row in experts for expert in row]
    sorted_ids, block_experts = [], []
    for expert in range(num_experts):
        mine = [number for number, chosen in enumerate(flat) if chosen == expert]
        blocks = len(mine) // block + 1 if mine else 0
        sorted_ids += mine + [len(flat)] * (blocks * block - len(mine))
        block_experts += [expert] * blocks
    return sorted_ids, block_experts
