def generate(model, prompt, max_new_tokens):
    cache, new, fed = [], [], 0
    while len(new) < max_new_tokens:
        positions = list(range(fed, len(prompt)))
        token = int(model(prompt[fed:], positions, cache)[-1].argmax())
        fed = len(prompt)
        prompt.append(token)
        new.append(token)
    return new
