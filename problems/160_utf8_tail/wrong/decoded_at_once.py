def split_tail(data):
    return bytes(data).decode(errors="replace"), []
