def broadcast(io, ranks, messages, attempts):
    ready = set()
    io.send("hello")
    for _ in range(attempts):
        ready.update(io.poll())
        if len(ready) == ranks:
            break
    else:
        return False
    for message in messages:
        io.send(message)
    return True
