def chunk_plan(prompts, budget):
    batches, left = [[]], budget
    for request, (prompt_len, cached_len) in enumerate(prompts):
        start = cached_len
        while start < prompt_len:
            if left == 0:
                batches.append([])
                left = budget
            end = min(prompt_len, start + left)
            batches[-1].append([request, cached_len, cached_len + end - start])
            left -= end - start
            start = end
    return [batch for batch in batches if batch]
