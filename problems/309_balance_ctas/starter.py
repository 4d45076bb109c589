def balance(work, num_ctas):
    """Which CTA does which piece of work, and how much each has to do.

    work: list of (qo_len, kv_len), one a piece.
    num_ctas: how many CTAs there are, at least 1.
    Returns (assignment, loads): assignment[i] is the CTA of piece i;
    loads[c] the summed cost of CTA c. Lists of int.
    """
    raise NotImplementedError
