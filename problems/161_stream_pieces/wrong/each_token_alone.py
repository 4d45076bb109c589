def stream(decode, ids):
    return [decode([token]) for token in ids] + [""]
