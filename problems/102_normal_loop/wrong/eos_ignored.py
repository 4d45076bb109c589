def serve(engine, requests, max_running):
    waiting, running, done = list(requests), [], []
    step = 0
    while waiting or running:
        room = max_running - len(running)
        arrived = [req for req in waiting if req[1] <= step][:room]
        if arrived:
            waiting = waiting[len(arrived) :]
            batch = [[uid, max_tokens, []] for uid, _, max_tokens in arrived]
            tokens = engine.prefill([uid for uid, _, _ in batch])
            running += batch
        elif running:
            batch = running
            tokens = engine.decode([uid for uid, _, _ in batch])
        else:
            batch, tokens = [], []
            engine.idle()
        step += 1
        for (_, _, answer), token in zip(batch, tokens, strict=True):
            answer.append(token)
        left = []
        for uid, max_tokens, answer in running:
            if len(answer) == max_tokens:
                done.append([uid, answer])
            else:
                left.append([uid, max_tokens, answer])
        running = left
    return done
