"""What problem 141's calls reach: a queue whose work is done only when somebody waits for it, which is the worst that a GPU
may do to a program that does not wait."""


class Stub:
    """Invariants: `queue` has what was asked for and not done yet, in order; `host` the tokens that have been copied;
    `calls` what was done: a call that was refused is none."""

    def __init__(self, inputs):
        self.tokens = inputs["batches"]
        self.queue = []
        self.computed = set()
        self.host = {}
        self.calls = []

    def call(self, name, args, kwargs):
        (n,) = args
        known = type(n) is int and 0 <= n < len(self.tokens) and self.tokens[n] is not None
        if not known:
            raise ValueError(f"there is no batch {n}")
        if name not in ("launch", "copy", "record", "wait", "read"):
            raise AttributeError(f"the device has no {name}")
        self.calls.append(f"{name} {n}")
        if name in ("launch", "copy", "record"):
            self.queue.append((name, n))
            return None
        if name == "wait":
            return self.wait(n)
        return self.host.get(n, [-1] * len(self.tokens[n]))

    def wait(self, n):
        """Work off the queue up to the event; an event that was never recorded holds up nobody."""
        if ("record", n) not in self.queue:
            return
        end = self.queue.index(("record", n)) + 1
        for name, batch in self.queue[:end]:
            if name == "launch":
                self.computed.add(batch)
            elif name == "copy" and batch in self.computed:
                self.host[batch] = list(self.tokens[batch])
        del self.queue[:end]

    def outputs(self):
        return {"calls": self.calls}
