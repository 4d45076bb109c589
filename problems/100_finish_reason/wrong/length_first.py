def finish_reason(prompt_len, output, max_tokens, eos_ids, stop_token_ids, ignore_eos):
    token = output[-1]
    if len(output) >= max_tokens:
        return "length"
    if (token in eos_ids and not ignore_eos) or token in stop_token_ids:
        return "stop"
    return None
