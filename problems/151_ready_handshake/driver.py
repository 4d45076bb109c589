"""Runs problem 151: the publisher's side. The ranks, and what they hear, stand outside the sandbox."""


class Io:
    """What the submission sees of the sockets."""

    def __init__(self, call):
        self._call = call

    def send(self, text):
        self._call("send", text)

    def poll(self):
        return list(self._call("poll"))


def run(submission, inputs, call):
    sent = submission.broadcast(Io(call), inputs["ranks"], list(inputs["messages"]), inputs["attempts"])
    return {"returned": sent}
