def replay_locks(parents, sizes, ops):
    """parents, sizes: list[int], one a node, parent -1 right below the
    root; ops: list of ["lock" or "unlock", node].

    Returns locks (list[int], one a node), protected and evictable
    (ints, in tokens), after all ops.
    """
    raise NotImplementedError
