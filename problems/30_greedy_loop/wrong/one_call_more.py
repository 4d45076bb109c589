def generate(model, prompt, max_new_tokens, eos_ids):
    ids = list(prompt)
    new = []
    while True:
        token = int(model(ids)[-1].argmax())
        if len(new) == max_new_tokens or (new and new[-1] in eos_ids):
            return new
        ids.append(token)
        new.append(token)
