def match(cached, prompt, page_size):
    usable = prompt[:-1]
    longest = 0
    for sequence in cached:
        for start in range(0, len(usable), page_size):
            longest = max(longest, common(sequence, usable[start:]))
    return longest // page_size * page_size


def common(a, b):
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length
