def evict(nodes, need):
    """nodes: list of [id, parent, size, locks, used], ints, parent -1
    for children of the root; need: int, in tokens.

    Returns the ids of the evicted nodes in the order of eviction,
    list[int].
    """
    raise NotImplementedError
