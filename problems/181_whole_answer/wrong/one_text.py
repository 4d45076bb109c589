def whole_answer(prompt_tokens, n, pieces):
    choices = [{"index": i, "text": "", "finish_reason": None} for i in range(n)]
    completion = 0
    for index, text, new_tokens, reason in pieces:
        choices[0]["text"] += text
        completion += new_tokens
        if reason is not None:
            choices[index]["finish_reason"] = reason
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": prompt_tokens + completion,
    }
    return {"choices": choices, "usage": usage}
