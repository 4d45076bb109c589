def match(cached, prompt, page_size):
    # One token has to be computed, or there are no logits to sample from.
    usable = prompt[:-1]
    longest = max((common(sequence, usable) for sequence in cached), default=0)
    return longest // page_size * page_size


def common(a, b):
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            continue
        length += 1
    return length
