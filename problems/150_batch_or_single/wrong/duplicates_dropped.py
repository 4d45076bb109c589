def to_frames(messages, most):
    single = []
    for message in each(messages):
        if message not in single:
            single.append(message)
    groups = [single[i : i + most] for i in range(0, len(single), most)]
    return [group[0] if len(group) == 1 else group for group in groups]


def each(messages):
    for message in messages:
        if isinstance(message, list):
            yield from each(message)
        else:
            yield message
