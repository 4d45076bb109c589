def cache_request(row, locked, tree, length, page_size, finished):
    whole = length // page_size
    known = min(len(tree), whole)
    freed = tree[locked:known]
    added = row[locked:whole]
    if finished:
        return freed + row[whole:], added, []
    return freed, added, row
