def chunk_plan(prompts, budget):
    batches = []
    starts = [cached_len for _, cached_len in prompts]
    while any(start < prompt_len for start, (prompt_len, _) in zip(starts, prompts, strict=True)):
        batch = []
        for request, (prompt_len, _) in enumerate(prompts):
            if starts[request] < prompt_len:
                end = min(prompt_len, starts[request] + budget)
                batch.append([request, starts[request], end])
                starts[request] = end
        batches.append(batch)
    return batches
