import math


def arrivals(rate, uniforms):
    at, times = 0.0, [0.0]
    for u in uniforms:
        if rate is not None:
            at = -math.log1p(-u) / rate
        times.append(at)
    return times
