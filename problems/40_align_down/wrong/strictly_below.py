def align_down(n, page_size):
    return max(n - 1, 0) // page_size * page_size
