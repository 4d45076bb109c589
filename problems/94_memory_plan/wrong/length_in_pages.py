def memory_plan(ranks, memory_ratio, page_bytes, page_size, max_positions):
    pages = []
    for free_before, free_after in ranks:
        used = free_before - free_after
        budget = int(free_before * memory_ratio) - used
        pages.append(budget // page_bytes - 1)
    num_pages = max(0, min(pages))
    return num_pages, min(max_positions, num_pages)
