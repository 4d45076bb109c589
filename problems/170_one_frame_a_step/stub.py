"""What problem 170's calls reach: rank 0's inlet, into which messages come turn by turn, and a queue of frames for each of the
other ranks."""


class Stub:
    """Invariant: `frames[r]` has what was published and rank r has not taken, in order."""

    def __init__(self, inputs):
        self.arrivals = inputs["arrivals"]
        self.inlet = []
        self.frames = [[] for _ in range(inputs["ranks"])]
        self.calls = []

    def call(self, name, args, kwargs):
        if name == "begin":
            self.inlet += self.arrivals[args[0]]
            return None
        rank = args[0]
        if name == "drain" and rank == 0:
            return self.drain()
        if name == "publish" and rank == 0:
            return self.publish(args[1])
        if name == "next_frame" and rank > 0:
            return self.next_frame(rank)
        if name == "waiting" and rank > 0:
            return len(self.frames[rank])
        raise AttributeError(f"rank {rank} has no {name}")

    def drain(self):
        self.calls.append("rank 0 drains")
        messages, self.inlet = self.inlet, []
        return messages

    def publish(self, messages):
        if type(messages) is not list or any(type(m) is not int for m in messages):
            raise TypeError("what is published is a list of messages")
        self.calls.append(f"rank 0 publishes {list(messages)}")
        for waiting in self.frames[1:]:
            waiting.append(list(messages))

    def next_frame(self, rank):
        self.calls.append(f"rank {rank} takes a frame")
        return self.frames[rank].pop(0) if self.frames[rank] else []

    def outputs(self):
        return {"calls": self.calls}
