def imbalance(experts, num_experts, ranks):
    per_expert = [0] * num_experts
    for row in experts:
        for expert in row:
            per_expert[expert] += 1
    share = num_experts // ranks
    per_rank = [sum(per_expert[r * share : (r + 1) * share]) for r in range(ranks)]
    total = sum(per_rank)
    slowdown = max(per_expert) * num_experts / total if total else 1.0
    return per_expert, per_rank, slowdown
