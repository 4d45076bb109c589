

def sse_body(pieces, failed):
    events = list(pieces) if failed else [*pieces, "[DONE]"]
    body = ""
    for event in events:
        for line in event.split("\n"):
            body += f"data: {line}\n"
        body += "\n"
    return body
