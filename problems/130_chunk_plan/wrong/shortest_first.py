def chunk_plan(prompts, budget):
    batches, left = [[]], budget
    for request, (prompt_len, cached_len) in sorted(enumerate(prompts), key=lambda item: item[1][0] - item[1][1]):
        start = cached_len
        while start < prompt_len:
            if left == 0:
                batches.append([])
                left = budget
            end = min(prompt_len, start + left)
            batches[-1].append([request, start, end])
            left -= end - start
            start = end
    return [batch for batch in batches if batch]
