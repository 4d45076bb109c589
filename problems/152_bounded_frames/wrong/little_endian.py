def read_frames(chunks, limit):
    frames, buffer = [], []
    for chunk in chunks:
        buffer += chunk
        while len(buffer) >= 2:
            length = buffer[1] * 256 + buffer[0]
            if length > limit:
                return frames, len(buffer), True
            if len(buffer) < 2 + length:
                break
            frames.append(buffer[2 : 2 + length])
            buffer = buffer[2 + length :]
    return frames, len(buffer), False
