def read_frames(chunks, limit):
    frames = []
    for chunk in chunks:
        if len(chunk) < 2:
            continue
        length = chunk[0] * 256 + chunk[1]
        if length > limit:
            return frames, len(chunk), True
        frames.append(chunk[2 : 2 + length])
    return frames, 0, False
