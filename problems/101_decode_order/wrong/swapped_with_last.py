def next_batch(running, launched):
    requests = {uid: (arrival, remain) for uid, arrival, remain in running}
    requests.update({uid: (arrival, remain) for uid, arrival, remain in launched})
    batch = sorted(requests, key=lambda uid: requests[uid][0])
    i = 0
    while i < len(batch):
        if requests[batch[i]][1] > 0:
            i += 1
            continue
        batch[i] = batch[-1]
        batch.pop()
    return batch
