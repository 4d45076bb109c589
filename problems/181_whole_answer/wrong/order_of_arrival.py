def whole_answer(prompt_tokens, n, pieces):
    choices = {}
    completion = 0
    for index, text, new_tokens, reason in pieces:
        choice = choices.setdefault(index, {"index": index, "text": "", "finish_reason": None})
        choice["text"] += text
        completion += new_tokens
        choice["finish_reason"] = reason or choice["finish_reason"]
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": prompt_tokens + completion,
    }
    return {"choices": list(choices.values()), "usage": usage}
