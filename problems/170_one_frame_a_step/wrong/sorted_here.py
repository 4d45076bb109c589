def receive(rank, io):
    if rank > 0:
        return io.next_frame()
    messages = io.drain()
    io.publish(messages)
    return sorted(messages)
