"""Runs problem 205: one batch after another. The GPU stands outside: each call leaves the sandbox and is made there."""


class Gpu:
    """What the submission sees of it."""

    def __init__(self, call):
        self._call = call

    def fill(self, number):
        self._call("fill", number)

    def plan(self):
        self._call("plan")

    def run(self, layer):
        return self._call("run", layer)

    def record(self):
        self._call("record")

    def wait(self):
        self._call("wait")


def run(submission, inputs, call):
    gpu = Gpu(call)
    layers = inputs["layers"]
    return {"outputs": [submission.run_batch(gpu, n, layers) for n in range(len(inputs["batches"]))]}
