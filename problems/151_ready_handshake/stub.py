"""What problem 151's calls reach: ranks that begin to listen after some polls, hear what is sent from then on, and answer
greetings."""


class Stub:
    """Invariant: `answers` has what is under way, as (poll at which it can be seen, rank)."""

    def __init__(self, inputs):
        self.delays = inputs["delays"]
        self.lags = inputs["lags"]
        self.every = inputs["every"]
        self.greeted = [0] * len(self.delays)
        self.polls = 0
        self.answers = []
        self.calls = []
        self.heard = [[] for _ in self.delays]

    def call(self, name, args, kwargs):
        if name == "send":
            return self.send(*args)
        if name == "poll":
            return self.poll()
        raise AttributeError(f"io has no {name}")

    def send(self, text):
        self.calls.append(f"send {text}")
        for index, (delay, lag) in enumerate(zip(self.delays, self.lags, strict=True)):
            if self.polls < delay:
                continue
            if text == "hello":
                if self.greeted[index] % self.every[index] == 0:
                    self.answers.append((self.polls + 1 + lag, index + 1))
                self.greeted[index] += 1
            else:
                self.heard[index].append(text)

    def poll(self):
        self.calls.append("poll")
        self.polls += 1
        come = [rank for due, rank in self.answers if due <= self.polls]
        self.answers = [(due, rank) for due, rank in self.answers if due > self.polls]
        return come

    def outputs(self):
        return {"calls": self.calls, "heard": self.heard}
