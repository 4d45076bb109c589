def evict(nodes, need):
    evicted, freed = [], 0
    for node, _, size, locks, _ in sorted(nodes, key=lambda n: n[4]):
        if freed >= need:
            break
        if locks == 0:
            evicted.append(node)
            freed += size
    return evicted
