def replay_locks(parents, sizes, ops):
    locks = [0] * len(parents)
    protected, evictable = 0, sum(sizes)
    for kind, node in ops:
        while node != -1:
            if kind == "lock":
                protected += sizes[node]
                evictable -= sizes[node]
                locks[node] += 1
            else:
                locks[node] -= 1
                protected -= sizes[node]
                evictable += sizes[node]
            node = parents[node]
    return locks, protected, evictable
