import heapq


def balance(work, num_ctas):
    costs = [(2 * q + kv, i) for i, (q, kv) in enumerate(work)]
    heap = [(0, cta) for cta in range(num_ctas)]
    assignment, loads = [0] * len(work), [0] * num_ctas
    for cost, i in sorted(costs, reverse=True):
        load, cta = heapq.heappop(heap)
        assignment[i] = cta
        loads[cta] = load + cost
        heapq.heappush(heap, (loads[cta], cta))
    return assignment, loads
