def broadcast(io, ranks, messages, attempts):
    ready = set()
    for _ in range(attempts):
        io.send("hello")
        ready.update(io.poll())
        if len(ready) == ranks:
            break
    for message in messages:
        io.send(message)
    return len(ready) == ranks
