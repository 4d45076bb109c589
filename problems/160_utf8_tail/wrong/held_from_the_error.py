def split_tail(data):
    raw = bytes(data)
    try:
        return raw.decode(), []
    except UnicodeDecodeError as error:
        return raw[: error.start].decode(), list(raw[error.start :])
