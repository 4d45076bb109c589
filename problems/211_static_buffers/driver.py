"""Runs problem 211: a recorded closure over static buffers and a KV pool, as the engine has it on a CPU."""

import torch


class Graph:
    """Sees only the tensors that it was recorded with."""

    def __init__(self, static, pool):
        self._buffers, self._pool, self.replays = dict(static), pool, 0

    def replay(self):
        self.replays += 1
        ids, positions, out_loc = (self._buffers[name] for name in ("ids", "positions", "out_loc"))
        for token, position, slot in zip(ids.tolist(), positions.tolist(), out_loc.tolist(), strict=True):
            self._pool[slot] = token * 100 + position
        rows = torch.stack([ids, positions, self._pool[out_loc.long()]], dim=1)
        self._buffers["logits"].copy_(rows)


def run(submission, inputs):
    size, dummy_slot = inputs["size"], inputs["dummy_slot"]
    pool = torch.arange(inputs["slots"], dtype=torch.int32) * -1
    static = {name: torch.zeros(size, dtype=torch.int32) for name in ("ids", "positions", "out_loc")}
    static["out_loc"].fill_(dummy_slot)
    static["logits"] = torch.zeros(size, 3)
    graph = Graph(static, pool)
    logits = []
    for batch in inputs["batches"]:
        given = {name: tensor.clone() for name, tensor in batch.items()}
        logits.append(submission.replay(static, graph, given, dummy_slot))
    pool[dummy_slot] = 0
    return {"logits": [t.clone() for t in logits], "pool": pool, "replays": graph.replays}
