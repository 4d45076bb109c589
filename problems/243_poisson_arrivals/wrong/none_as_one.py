import math


def arrivals(rate, uniforms):
    at, times = 0.0, [0.0]
    for u in uniforms:
        at += -math.log1p(-u) / (rate or 1.0)
        times.append(at)
    return times
