def split_tail(data):
    raw = bytes(data)
    text = raw.decode(errors="replace")
    if not text.endswith("\ufffd"):
        return text, []
    text = text[:-1]
    for cut in range(1, len(raw) + 1):
        if raw[:-cut].decode(errors="replace") == text:
            return text, list(raw[-cut:])
    return text, []
