def receive(rank, io):
    if rank > 0:
        while io.waiting() > 1:
            io.next_frame()
        return io.next_frame()
    messages = io.drain()
    io.publish(messages)
    return messages
