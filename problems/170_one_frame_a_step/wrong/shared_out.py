def receive(rank, io):
    if rank > 0:
        return [m for m in io.next_frame() if m % 2 == rank % 2]
    messages = io.drain()
    io.publish(messages)
    return [m for m in messages if m % 2 == 0]
