def goodput(requests, wall, ttft_limit, tpot_limit):
    answered = [r for r in requests if r[2]]
    if not answered:
        return 0.0
    ttft = sum(r[0] for r in answered) / len(answered)
    tpots = [(last - first) / (tokens - 1) for first, last, tokens in answered if tokens > 1] or [0.0]
    kept = ttft <= ttft_limit and sum(tpots) / len(tpots) <= tpot_limit
    return len(answered) / wall if kept else 0.0
