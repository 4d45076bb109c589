

def arrivals(rate, uniforms):
    at, times = 0.0, [0.0]
    for _u in uniforms:
        if rate is not None:
            at += 1 / rate
        times.append(at)
    return times
