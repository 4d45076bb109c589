"""Runs problem 102 on a toy engine: each request's answer is known beforehand, and every step is written down."""


class Engine:
    """What the submission drives. A request that is asked for more than its answer says 99."""

    def __init__(self, says):
        self._left = {uid: list(tokens) for uid, tokens in says.items()}
        self.steps = []

    def prefill(self, uids):
        return self._step("prefill", uids)

    def decode(self, uids):
        return self._step("decode", uids)

    def idle(self):
        self.steps.append(["idle"])

    def _step(self, kind, uids):
        self.steps.append([kind, *uids])
        return [self._left[uid].pop(0) if self._left[uid] else 99 for uid in uids]


def run(submission, inputs):
    uids = [uid for uid, _, _ in inputs["requests"]]
    engine = Engine(dict(zip(uids, inputs["says"], strict=True)))
    requests = [list(request) for request in inputs["requests"]]
    answers = submission.serve(engine, requests, inputs["max_running"])
    return {"answers": answers, "steps": engine.steps}
