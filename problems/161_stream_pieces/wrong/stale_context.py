def stream(decode, ids):
    pieces, start, sent = [], 0, 0
    for count in range(1, len(ids) + 1):
        text = decode(ids[start:count])
        certain = text.removesuffix("\ufffd")
        pieces.append(certain[sent:])
        sent = max(sent, len(certain))
        if certain == text:
            start, sent = count, 0
    pieces.append(decode(ids[start:])[sent:])
    return pieces
