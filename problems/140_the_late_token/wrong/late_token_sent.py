def overlapped(tokens, max_tokens, eos_ids):
    end = next((i for i, t in enumerate(tokens[:max_tokens]) if t in eos_ids), max_tokens - 1)
    launches = min(max_tokens, end + 2)
    return tokens[:launches], launches, launches - 1
