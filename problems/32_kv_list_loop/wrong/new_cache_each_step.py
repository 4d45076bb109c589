def generate(model, prompt, max_new_tokens):
    cache, new = [], []
    ids, fed = list(prompt), 0
    while len(new) < max_new_tokens:
        positions = list(range(fed, fed + len(ids)))
        token = int(model(ids, positions, [])[-1].argmax())
        fed += len(ids)
        ids = [token]
        new.append(token)
    return new
