def generate(model, prompt, max_new_tokens, eos_ids):
    ids = list(prompt)
    new = []
    while len(new) < max_new_tokens:
        token = int(model(ids)[-1].argmax())
        if token in eos_ids:
            break
        ids.append(token)
        new.append(token)
    return new
