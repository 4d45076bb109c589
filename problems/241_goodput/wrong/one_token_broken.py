def goodput(requests, wall, ttft_limit, tpot_limit):
    kept = 0
    for ttft, last, tokens in requests:
        if tokens == 0 or ttft > ttft_limit:
            continue
        tpot = (last - ttft) / (tokens - 1) if tokens > 1 else float("inf")
        if tpot <= tpot_limit:
            kept += 1
    return kept / wall
