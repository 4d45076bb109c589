def chunk_plan(prompts, budget):
    batches, left = [[]], budget
    for request, (prompt_len, cached_len) in enumerate(prompts):
        start = cached_len
        while start < prompt_len:
            if left == 0 or (left < budget and start == cached_len and prompt_len - start > left):
                batches.append([])
                left = budget
            end = min(prompt_len, start + left)
            batches[-1].append([request, start, end])
            left -= end - start
            start = end
    return [batch for batch in batches if batch]
