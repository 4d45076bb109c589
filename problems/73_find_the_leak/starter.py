def audit(log):
    """log: [("take" | "give", uid, pages) | ("finish", uid), ...].

    Returns (leaked, taken_twice, not_owned), lists of
    page ids, ascending.
    """
    raise NotImplementedError
