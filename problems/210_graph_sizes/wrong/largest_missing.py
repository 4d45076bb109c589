from bisect import bisect_left


def graph_sizes(batch_sizes, largest):
    sizes = [size for size in (1, 2, 4) if size <= largest] + list(range(8, largest + 1, 8))
    chosen, wasted = [], 0
    for batch in batch_sizes:
        place = bisect_left(sizes, batch)
        if place == len(sizes):
            chosen.append(0)
            continue
        chosen.append(sizes[place])
        wasted += sizes[place] - batch
    return sizes, chosen, wasted
