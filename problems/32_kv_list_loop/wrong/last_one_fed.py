def generate(model, prompt, max_new_tokens):
    cache, new = [], []
    if max_new_tokens == 0:
        return new
    logits = model(list(prompt), list(range(len(prompt))), cache)
    for step in range(max_new_tokens):
        token = int(logits[-1].argmax())
        new.append(token)
        logits = model([token], [len(prompt) + step], cache)
    return new
