def abort(uid, waiting, prefilling, decoding, leaving, in_flight, free_pages, free_rows):
    """uid: int; waiting, in_flight: list[int], uids;
    prefilling, decoding, leaving: list of [uid, row, pages, shared];
    free_pages, free_rows: list[int].

    Returns waiting, prefilling, decoding, leaving, free_pages,
    free_rows afterwards.
    """
    raise NotImplementedError
