def next_batch(running, launched):
    both = sorted(running + launched, key=lambda request: request[1])
    return [uid for uid, _, remain in both if remain > 0]
