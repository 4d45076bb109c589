def generate(model, prompt, max_new_tokens):
    """model(ids: list[int], positions: list[int], cache: list) ->
    logits, float32 [len(ids), vocab].

    Returns the new tokens, list[int].
    """
    raise NotImplementedError
