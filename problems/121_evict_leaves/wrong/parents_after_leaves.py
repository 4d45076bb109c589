def evict(nodes, need):
    left = {node: (parent, size, locks, used) for node, parent, size, locks, used in nodes}
    evicted, freed = [], 0
    while freed < need:
        parents = {parent for parent, *_ in left.values()}
        leaves = sorted((used, n) for n, (_, _, locks, used) in left.items() if locks == 0 and n not in parents)
        if not leaves:
            break
        for _, node in leaves:
            if freed >= need:
                break
            evicted.append(node)
            freed += left.pop(node)[1]
    return evicted
