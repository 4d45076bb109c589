STATUS = {
    "bad_field": 400,
    "too_long": 400,
    "no_model": 404,
    "queue_full": 429,
    "bug": 500,
    "engine_died": 503,
    "timed_out": 504,
    "client_gone": 499,
}


def reply_to_fault(fault, started):
    own = STATUS[fault]
    send = fault != "client_gone"
    return {
        "status": 200 if started else own,
        "retry_after": None,
        "type": "invalid_request_error" if own < 500 else "server_error",
        "in_stream": started and send,
        "send": send,
    }
