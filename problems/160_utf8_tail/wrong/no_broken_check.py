def split_tail(data):
    raw = bytes(data)
    for back in range(1, min(3, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            if back < need:
                return raw[:-back].decode(errors="replace"), list(raw[-back:])
            break
    return raw.decode(errors="replace"), []
