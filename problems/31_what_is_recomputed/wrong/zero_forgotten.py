def token_forwards(prompt_len, new_tokens):
    naive = prompt_len * max(new_tokens, 1) + new_tokens * (new_tokens - 1) // 2
    cached = prompt_len + max(new_tokens, 1) - 1
    return naive, cached
