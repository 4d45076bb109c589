def replay(free, events):
    """free: list of page ids, int;
    events: list of ["take", uid, count], ["end", uid, 0] or ["abort",
    uid, 0].

    Returns the free pages in their order, list[int], and what is held,
    list of [uid, [pages]] with uid ascending.
    """
    raise NotImplementedError
