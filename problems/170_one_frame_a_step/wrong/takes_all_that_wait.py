def receive(rank, io):
    if rank > 0:
        messages = []
        for _ in range(max(1, io.waiting())):
            messages += io.next_frame()
        return messages
    messages = io.drain()
    io.publish(messages)
    return messages
