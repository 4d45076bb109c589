def token_forwards(prompt_len, new_tokens):
    if new_tokens == 0:
        return 0, 0
    naive = prompt_len * new_tokens + new_tokens * (new_tokens - 1) // 2
    cached = prompt_len + new_tokens
    return naive, cached
