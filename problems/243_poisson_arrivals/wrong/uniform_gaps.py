

def arrivals(rate, uniforms):
    at, times = 0.0, [0.0]
    for u in uniforms:
        if rate is not None:
            at += 2 * u / rate
        times.append(at)
    return times
