def hit_rate(prompts, page_size):
    known, hits = set(), []
    for prompt in prompts:
        hit = 0
        while hit + 1 < len(prompt) and tuple(prompt[: hit + 1]) in known:
            hit += 1
        hits.append(hit)
        known |= {tuple(prompt[:end]) for end in range(1, len(prompt) + 1)}
    total = sum(map(len, prompts))
    return hits, sum(hits) / total if total else 0.0
