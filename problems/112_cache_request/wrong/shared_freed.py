def cache_request(row, locked, tree, length, page_size, finished):
    whole = length // page_size
    known = min(len(tree), whole)
    freed = row[:known]
    added = row[known:whole]
    if finished:
        return freed + row[whole:], added, []
    return freed, added, tree[:known] + row[known:]
