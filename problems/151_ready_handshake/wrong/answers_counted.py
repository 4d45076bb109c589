def broadcast(io, ranks, messages, attempts):
    ready = 0
    for _ in range(attempts):
        io.send("hello")
        ready += len(io.poll())
        if ready >= ranks:
            break
    else:
        return False
    for message in messages:
        io.send(message)
    return True
