def abort(uid, waiting, prefilling, decoding, leaving, in_flight, free_pages, free_rows):
    for req in prefilling + decoding:
        if req[0] != uid:
            continue
        if uid in in_flight:
            leaving = [*leaving, req]
        else:
            _, row, pages, shared = req
            free_pages = free_pages + pages[shared:]
            free_rows = [*free_rows, row]
    prefilling = [req for req in prefilling if req[0] != uid]
    decoding = [req for req in decoding if req[0] != uid]
    return waiting, prefilling, decoding, leaving, free_pages, free_rows
