def goodput(requests, wall, ttft_limit, tpot_limit):
    """Requests a second that kept both limits, float.
    requests: list of [ttft, last, tokens], seconds.
    """
    raise NotImplementedError
