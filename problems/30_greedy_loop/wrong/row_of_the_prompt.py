def generate(model, prompt, max_new_tokens, eos_ids):
    ids = list(prompt)
    new = []
    while len(new) < max_new_tokens:
        token = int(model(ids)[len(prompt) - 1].argmax())
        ids.append(token)
        new.append(token)
        if token in eos_ids:
            break
    return new
