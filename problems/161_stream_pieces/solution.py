def stream(decode, ids):
    pieces, sent = [], 0
    for count in range(1, len(ids) + 1):
        # A character that is not complete yet is decoded as one U+FFFD, at the end.
        certain = decode(ids[:count]).removesuffix("\ufffd")
        pieces.append(certain[sent:])
        sent = max(sent, len(certain))
    pieces.append(decode(ids)[sent:])
    return pieces
