def receive(rank, io):
    if rank > 0:
        return io.next_frame()
    messages = io.drain()
    if messages:
        io.publish(messages)
    return messages
