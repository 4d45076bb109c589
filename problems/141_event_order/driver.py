"""Runs problem 141: a scheduler's loop, one step after another, and one more at the end that only looks. The device stands
outside: each of its calls leaves the sandbox and is made there."""


class Device:
    """What the submission sees of the device."""

    def __init__(self, call):
        self._call = call

    def launch(self, n):
        self._call("launch", n)

    def copy(self, n):
        self._call("copy", n)

    def record(self, n):
        self._call("record", n)

    def wait(self, n):
        self._call("wait", n)

    def read(self, n):
        return self._call("read", n)


def run(submission, inputs, call):
    device = Device(call)
    returned, last = [], None
    for number, batch in enumerate([*inputs["batches"], None]):
        now = None if batch is None else number
        returned.append(submission.step(device, now, last))
        last = now
    return {"returned": returned}
