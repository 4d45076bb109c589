def bad_fields(params):
    inf = float("inf")
    wrong = {
        "temperature": params["temperature"] < 0.0 or params["temperature"] == inf,
        "top_k": params["top_k"] != -1 and params["top_k"] < 1,
        "top_p": params["top_p"] <= 0.0 or params["top_p"] > 1.0,
        "min_p": params["min_p"] < 0.0 or params["min_p"] >= 1.0,
        "max_tokens": params["max_tokens"] < 1,
    }
    return [name for name, bad in wrong.items() if bad]
