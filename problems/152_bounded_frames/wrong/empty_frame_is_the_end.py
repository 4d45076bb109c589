def read_frames(chunks, limit):
    frames, buffer = [], []
    for chunk in chunks:
        buffer += chunk
        while len(buffer) >= 2:
            length = buffer[0] * 256 + buffer[1]
            if length == 0:
                return frames, len(buffer), False
            if length > limit:
                return frames, len(buffer), True
            if len(buffer) < 2 + length:
                break
            frames.append(buffer[2 : 2 + length])
            buffer = buffer[2 + length :]
    return frames, len(buffer), False
