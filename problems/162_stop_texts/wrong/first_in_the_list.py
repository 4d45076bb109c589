def until_stop(pieces, stops):
    sent, held = [], ""
    for piece in pieces:
        held += piece
        found = [at for stop in stops if (at := held.find(stop)) >= 0]
        if found:
            sent.append(held[: found[0]])
            return sent, True
        keep = max((overlap(held, stop) for stop in stops), default=0)
        split = len(held) - keep
        sent.append(held[:split])
        held = held[split:]
    sent.append(held)
    return sent, False


def overlap(text, stop):
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
