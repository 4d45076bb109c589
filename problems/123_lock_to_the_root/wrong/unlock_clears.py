def replay_locks(parents, sizes, ops):
    locks = [0] * len(parents)
    for kind, node in ops:
        while node != -1:
            locks[node] = locks[node] + 1 if kind == "lock" else 0
            node = parents[node]
    protected = sum(size for size, n in zip(sizes, locks, strict=True) if n > 0)
    return locks, protected, sum(sizes) - protected
