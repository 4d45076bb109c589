def generate(model, prompt, max_new_tokens):
    cache, new = [], []
    logits = model(list(prompt), list(range(len(prompt))), cache)
    while len(new) < max_new_tokens:
        token = int(logits[-1].argmax())
        new.append(token)
        if len(new) < max_new_tokens:
            logits = model([token], [len(prompt) + len(new) - 1], cache)
    return new
