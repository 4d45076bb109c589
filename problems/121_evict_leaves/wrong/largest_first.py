import heapq


def evict(nodes, need):
    info = {node: (parent, size, locks, used) for node, parent, size, locks, used in nodes}
    children = {}
    for parent, *_ in info.values():
        children[parent] = children.get(parent, 0) + 1
    heap = [(-size, node) for node, (_, size, locks, used) in info.items() if locks == 0 and node not in children]
    heapq.heapify(heap)
    evicted, freed = [], 0
    while freed < need and heap:
        _, node = heapq.heappop(heap)
        parent, size, _, _ = info[node]
        evicted.append(node)
        freed += size
        children[parent] -= 1
        if parent != -1 and children[parent] == 0 and info[parent][2] == 0:
            heapq.heappush(heap, (-info[parent][1], parent))
    return evicted
