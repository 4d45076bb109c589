def latency_percentiles(requests, percents):
    """(ttft: list[float], tpot: list[float]), seconds, one a percent.
    requests: list of [sent, times].
    """
    raise NotImplementedError
