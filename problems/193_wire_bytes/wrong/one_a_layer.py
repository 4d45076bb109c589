def wire_bytes(layers, hidden, vocab_size, dtype_bytes, tokens, requests, size):
    if size == 1:
        return 0, 0, 0
    reduced = (layers + 1) * hidden * dtype_bytes * tokens
    gathered = -(-vocab_size // size) * dtype_bytes * requests
    sent = 2 * (size - 1) * reduced // size
    return reduced, gathered, sent
