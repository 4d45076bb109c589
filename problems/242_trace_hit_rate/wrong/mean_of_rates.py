def hit_rate(prompts, page_size):
    known, hits = set(), []
    for prompt in prompts:
        hit = 0
        while hit + page_size < len(prompt) and tuple(prompt[: hit + page_size]) in known:
            hit += page_size
        hits.append(hit)
        for end in range(page_size, len(prompt) + 1, page_size):
            known.add(tuple(prompt[:end]))
    sum(map(len, prompts))
    return hits, sum(h / len(p) for h, p in zip(hits, prompts, strict=True)) / len(
        prompts
    ) if prompts else 0.0
