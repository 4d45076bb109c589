def align_blocks(experts, num_experts, block):
    flat = [expert for row in experts for expert in row]
    order = sorted(range(len(flat)), key=lambda number: flat[number])
    blocks = -(-len(flat) // block)
    sorted_ids = order + [len(flat)] * (blocks * block - len(flat))
    return sorted_ids, [flat[order[i * block]] for i in range(blocks)]
