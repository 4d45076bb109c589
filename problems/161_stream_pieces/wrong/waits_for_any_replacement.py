def stream(decode, ids):
    pieces, sent = [], 0
    for count in range(1, len(ids) + 1):
        text = decode(ids[:count])
        if "\ufffd" in text:
            pieces.append("")
            continue
        pieces.append(text[sent:])
        sent = len(text)
    pieces.append(decode(ids)[sent:])
    return pieces
