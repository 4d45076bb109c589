def overlapped(tokens, max_tokens, eos_ids):
    return tokens[:max_tokens], max_tokens, max_tokens - 1
