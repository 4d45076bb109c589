def broadcast(io, ranks, messages, attempts):
    for message in messages:
        io.send(message)
    return True
