def align_down(n, page_size):
    return n // page_size * page_size
