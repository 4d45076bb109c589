def next_batch(running, launched):
    requests = {uid: (arrival, remain) for uid, arrival, remain in running}
    requests.update({uid: (arrival, remain) for uid, arrival, remain in launched})
    going_on = [uid for uid, (_, remain) in requests.items() if remain > 0]
    return going_on
