def hit_rate(prompts, page_size):
    cached, hits = set(), []
    for prompt in prompts:
        pages = [tuple(prompt[:n]) for n in range(page_size, len(prompt) + 1, page_size)]
        hit = max((len(p) for p in pages if p in cached), default=0)
        hits.append(min(hit, len(prompt) - 1))
        cached.update(pages)
    total = sum(len(prompt) for prompt in prompts)
    return hits, sum(hits) / total if total else 0.0
