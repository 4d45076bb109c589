def admit(waiting, free_pages, reserved_pages, total_pages, page_size):
    """waiting: list of [uid, prompt_len, max_tokens], ints, in order of
    arrival; the other arguments are ints, in pages
    or (page_size) in tokens.

    Returns three lists of uids: admitted, waiting, refused.
    """
    raise NotImplementedError
