def balance(work, num_ctas):
    costs = [2 * qo_len + kv_len for qo_len, kv_len in work]
    assignment, loads = [0] * len(work), [0] * num_ctas
    for turn, i in enumerate(sorted(range(len(work)), key=lambda i: -costs[i])):
        assignment[i] = turn % num_ctas
        loads[turn % num_ctas] += costs[i]
    return assignment, loads
