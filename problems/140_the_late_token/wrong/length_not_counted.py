def overlapped(tokens, max_tokens, eos_ids):
    end = next((i for i, t in enumerate(tokens[:max_tokens]) if t in eos_ids), max_tokens - 1)
    return tokens[: end + 1], end + 2, end + 1
