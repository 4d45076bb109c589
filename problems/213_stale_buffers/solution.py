def stale_buffers(buffers, batch, padding):
    stale = []
    for name in sorted(buffers):
        now, wanted = buffers[name].tolist(), batch[name].tolist()
        size = len(wanted)
        rest = now[size:]
        if now[:size] != wanted or (name in padding and any(value != padding[name] for value in rest)):
            stale.append(name)
    return stale
