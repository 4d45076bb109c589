def next_batch(running, launched):
    requests = {}
    requests.update({uid: (arrival, remain) for uid, arrival, remain in launched})
    going_on = [uid for uid, (_, remain) in requests.items() if remain > 0]
    return sorted(going_on, key=lambda uid: requests[uid][0])
