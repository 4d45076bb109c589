def generate(model, prompt, max_new_tokens, eos_ids):
    ids = prompt
    new = []
    while len(new) < max_new_tokens:
        token = int(model(ids)[-1].argmax())
        ids.append(token)
        new.append(token)
        if token in eos_ids:
            break
    return new
