"""Runs problem 182: the parts of the answer are looked at one by one."""


def run(submission, inputs):
    reply = submission.reply_to_fault(inputs["fault"], inputs["started"])
    return {name: reply[name] for name in ("status", "retry_after", "type", "in_stream", "send")}
