def generate(model, prompt, max_new_tokens):
    cache, new = [], []
    if max_new_tokens == 0:
        return new
    model(list(prompt), list(range(len(prompt))), cache)
    token, position = prompt[-1], len(prompt)
    while len(new) < max_new_tokens:
        token = int(model([token], [position], cache)[-1].argmax())
        position += 1
        new.append(token)
    return new
