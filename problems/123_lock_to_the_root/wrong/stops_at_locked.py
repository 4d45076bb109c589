def replay_locks(parents, sizes, ops):
    locks = [0] * len(parents)
    for kind, node in ops:
        while node != -1:
            if kind == "lock":
                locks[node] += 1
                if locks[node] > 1:
                    break
            else:
                locks[node] -= 1
                if locks[node] > 0:
                    break
            node = parents[node]
    protected = sum(size for size, n in zip(sizes, locks, strict=True) if n > 0)
    return locks, protected, sum(sizes) - protected
