def receive(rank, io):
    if rank > 0:
        return io.next_frame()
    messages = io.drain()
    for message in messages:
        io.publish([message])
    if not messages:
        io.publish([])
    return messages
