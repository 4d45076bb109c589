import re


def sse_body(pieces, failed):
    events = list(pieces) if failed else [*pieces, "[DONE]"]
    body = ""
    for event in events:
        for line in re.split("\r\n|\n|\r", event):
            body += f"data: {line}\n"
        body += "\n"
    return body
