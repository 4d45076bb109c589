from bisect import bisect_left


def graph_sizes(batch_sizes, largest):
    sizes = [size for size in (1, 2, 4) if size < largest] + list(range(8, largest, 8))
    if largest > 0:
        sizes.append(largest)
    chosen, wasted = [], 0
    for batch in batch_sizes:
        if batch > largest:
            chosen.append(0)
            continue
        size = sizes[bisect_left(sizes, batch)]
        chosen.append(size)
        wasted += size - batch
    return sizes, chosen, wasted
