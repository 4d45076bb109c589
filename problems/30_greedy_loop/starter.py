def generate(model, prompt, max_new_tokens, eos_ids):
    """model(ids: list[int]) -> logits, float32 [len(ids), vocab].

    Returns the new tokens, list[int].
    """
    raise NotImplementedError
