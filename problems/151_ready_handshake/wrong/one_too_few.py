def broadcast(io, ranks, messages, attempts):
    ready = set()
    for _ in range(attempts):
        io.send("hello")
        ready.update(io.poll())
        if len(ready) >= max(1, ranks - 1):
            break
    else:
        return False
    for message in messages:
        io.send(message)
    return True
