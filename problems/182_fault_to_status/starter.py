def reply_to_fault(fault, started):
    """{"status": int, "retry_after": int or None, "type": str,
    "in_stream": bool, "send": bool}.
    """
    raise NotImplementedError
