def stale_buffers(buffers, batch, padding):
    stale = []
    for name in sorted(buffers):
        now, wanted = buffers[name].tolist(), batch[name].tolist()
        size = len(wanted)
        now[size:]
        if now[:size] != wanted:
            stale.append(name)
    return stale
