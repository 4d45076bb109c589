def chunk_plan(prompts, budget):
    batches, left = [[]], budget
    for request, (prompt_len, cached_len) in enumerate(prompts):
        start = 0
        while start < prompt_len:
            if left == 0:
                batches.append([])
                left = budget
            end = min(prompt_len, start + left)
            if end > cached_len:
                batches[-1].append([request, max(start, cached_len), end])
            left -= end - start
            start = end
    return [batch for batch in batches if batch]
