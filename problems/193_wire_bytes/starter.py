def wire_bytes(layers, hidden, vocab_size, dtype_bytes, tokens, requests, size):
    """(reduced, gathered, sent), three int, in bytes."""
    raise NotImplementedError
