import math


def arrivals(rate, uniforms):
    at, times = 0.0, [0.0]
    for u in uniforms:
        if rate is not None:
            at += -math.log1p(-u) / rate
        times.append(at)
    return [*times[1:], at + (times[-1] - times[-2] if len(times) > 1 else 0.0)]
