import heapq


def balance(work, num_ctas):
    heap = [(0, cta) for cta in range(num_ctas)]
    assignment, loads = [], [0] * num_ctas
    for cost in sorted((2 * q + kv for q, kv in work), reverse=True):
        load, cta = heapq.heappop(heap)
        assignment.append(cta)
        loads[cta] = load + cost
        heapq.heappush(heap, (loads[cta], cta))
    return assignment, loads
