def overlapped(tokens, max_tokens, eos_ids):
    sent, launches, finished = [], 0, False
    landed = 0
    while True:
        # Launch first: a request that has reached its length needs no further step, an eos is not known yet.
        launch = not finished and launches < max_tokens
        if launch:
            launches += 1
        if landed < launches - launch:
            token = tokens[landed]
            landed += 1
            if not finished:
                sent.append(token)
                finished = token in eos_ids or len(sent) == max_tokens
        if finished and landed == launches:
            return sent, launches, landed - 1
