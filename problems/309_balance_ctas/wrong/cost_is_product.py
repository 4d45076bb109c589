import heapq


def balance(work, num_ctas):
    costs = [qo_len * kv_len for qo_len, kv_len in work]
    heap = [(0, cta) for cta in range(num_ctas)]
    assignment, loads = [0] * len(work), [0] * num_ctas
    for i in sorted(range(len(work)), key=lambda i: -costs[i]):
        load, cta = heapq.heappop(heap)
        assignment[i] = cta
        loads[cta] = load + costs[i]
        heapq.heappush(heap, (loads[cta], cta))
    return assignment, loads
