def finish_reason(prompt_len, output, max_tokens, eos_ids, stop_token_ids, ignore_eos):
    """Lengths in tokens;
    output: list of generated ids, its last just appended;
    eos_ids, stop_token_ids: lists of ids.

    Returns "stop", "length", or None if the answer goes on.
    """
    raise NotImplementedError
