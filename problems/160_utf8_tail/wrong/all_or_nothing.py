def split_tail(data):
    try:
        return bytes(data).decode(), []
    except UnicodeDecodeError:
        return "", list(data)
