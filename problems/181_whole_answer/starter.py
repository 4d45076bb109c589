def whole_answer(prompt_tokens, n, pieces):
    """{"choices": [...], "usage": {...}} as the statement says.

    pieces: list of [index int, text str, new_tokens int, finish_reason
    str or None], as they came.
    """
    raise NotImplementedError
