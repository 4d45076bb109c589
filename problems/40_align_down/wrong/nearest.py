def align_down(n, page_size):
    return (n + page_size // 2) // page_size * page_size
