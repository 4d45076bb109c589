def bad_fields(params):
    right = {
        "temperature": 0.0 <= params["temperature"] < float("inf"),
        "top_k": params["top_k"] >= 1,
        "top_p": 0.0 < params["top_p"] <= 1.0,
        "min_p": 0.0 <= params["min_p"] < 1.0,
        "max_tokens": params["max_tokens"] >= 1,
    }
    return [name for name, ok in right.items() if not ok]
