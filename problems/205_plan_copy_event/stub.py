"""What problem 205's calls reach: the checker's own fake decode wrapper with plans that don't block, and a queue of what a
GPU would still have to do."""

import torch
from flashinfer import BatchDecodeWithPagedKVCacheWrapper

HEADS, KV_HEADS, HEAD_DIM, PAGE_SIZE, PAGES = 2, 1, 16, 4, 24


class Stub:
    """Invariant: `queue` is what was queued and not waited for, oldest first: ("copy", batch) or ("run", batch).
    `event` counts what stands before it in `queue`, or is None."""

    def __init__(self, inputs):
        self.batches = inputs["batches"]
        self.wrapper = BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 22, dtype=torch.uint8))
        self.buffers = {name: torch.zeros_like(tensor) for name, tensor in self.batches[0].items()}
        generator = torch.Generator().manual_seed(5)
        shape = (PAGES, PAGE_SIZE, KV_HEADS, HEAD_DIM)
        self.pool = tuple(torch.randn(shape, generator=generator) for _ in "kv")
        self.queue, self.event, self.current = [], None, -1
        self.overwritten, self.bubbles, self.waited_for = [], 0, 0
        self.calls = []

    def call(self, name, args, kwargs):
        if name not in ("fill", "plan", "run", "record", "wait"):
            raise AttributeError(f"the GPU has no {name}")
        result = getattr(self, name)(*args, **kwargs)
        self.calls.append(name)  # done: one that is refused is no call
        return result

    def fill(self, number):
        self.overwritten += [batch for what, batch in self.queue if what == "copy"]
        self.current = int(number)
        for name, tensor in self.batches[self.current].items():
            self.buffers[name].copy_(tensor)

    def plan(self):
        sizes = (HEADS, KV_HEADS, HEAD_DIM, PAGE_SIZE)
        given = (self.buffers[name] for name in ("indptr", "indices", "last_page_len"))
        self.wrapper.plan(*given, *sizes, q_data_type=torch.float32, non_blocking=True)
        self.queue.append(("copy", self.current))

    def run(self, layer):
        generator = torch.Generator().manual_seed(100 * self.current + int(layer))
        q = torch.randn(len(self.buffers["last_page_len"]), HEADS, HEAD_DIM, generator=generator)
        out = self.wrapper.run(q, self.pool)
        self.queue.append(("run", self.current))
        return out

    def record(self):
        self.event = len(self.queue)

    def wait(self):
        if not self.event:
            return
        self.waited_for += self.event
        self.queue = self.queue[self.event :]
        self.event = 0
        if not self.queue:
            self.bubbles += 1

    def outputs(self):
        kinds = {f"{name}s": self.calls.count(name) for name in ("fill", "plan", "run")}
        found = {"overwritten": self.overwritten, "bubbles": self.bubbles, "waited_for": self.waited_for}
        return {**found, **kinds}
