def finish_reason(prompt_len, output, max_tokens, eos_ids, stop_token_ids, ignore_eos):
    token = output[-1]
    if token in eos_ids and not ignore_eos:
        return "stop"
    if token in stop_token_ids:
        return "stop"
    if prompt_len + len(output) >= max_tokens:
        return "length"
    return None
