def broadcast(io, ranks, messages, attempts):
    ready = set()
    for _ in range(attempts):
        io.send("hello")
        ready.update(io.poll())
        if ready:
            break
    else:
        return False
    for message in messages:
        io.send(message)
    return True
