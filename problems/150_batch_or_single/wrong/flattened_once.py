def to_frames(messages, most):
    single = list(each(messages))
    groups = [single[i : i + most] for i in range(0, len(single), most)]
    return [group[0] if len(group) == 1 else group for group in groups]


def each(messages):
    for message in messages:
        if isinstance(message, list):
            yield from message
        else:
            yield message
