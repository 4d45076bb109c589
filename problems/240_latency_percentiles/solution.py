import math


def latency_percentiles(requests, percents):
    answered = [(sent, times) for sent, times in requests if times]
    ttft = [times[0] - sent for sent, times in answered]
    tpot = [(times[-1] - times[0]) / (len(times) - 1) for _, times in answered if len(times) > 1]

    def percentile(values, percent):
        place = (len(values) - 1) * percent / 100
        low = math.floor(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (values[high] - values[low]) * (place - low)

    def all_percentiles(values):
        ordered = sorted(values)
        return [percentile(ordered, p) for p in percents] if ordered else []

    return all_percentiles(ttft), all_percentiles(tpot)
