def match(cached, prompt, page_size):
    # One token has to be computed, or there are no logits to sample from.
    usable = prompt[:-1]
    longest = next((n for s in cached if (n := common(s, usable)) > 0), 0)
    return longest // page_size * page_size


def common(a, b):
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length
