"""What problem 202's calls reach: the checker's own fake decode wrapper, over one pool a layer."""

import torch
from flashinfer import BatchDecodeWithPagedKVCacheWrapper

HEADS, KV_HEADS, HEAD_DIM, PAGE_SIZE, PAGES = 2, 1, 16, 4, 24


class Stub:
    """Does the calls and notes them. Invariant: `calls` has one entry a call that was made, in order; one that
    the wrapper refuses is not made."""

    def __init__(self, inputs):
        self.wrapper = BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 22, dtype=torch.uint8))
        self.pools = {}
        self.calls = []

    def call(self, name, args, kwargs):
        if name == "plan":
            return self.plan(*args, **kwargs)
        if name == "run":
            return self.run(*args, **kwargs)
        raise AttributeError(f"the wrapper has no {name}")

    def plan(self, indptr, indices, last_page_len):
        sizes = (HEADS, KV_HEADS, HEAD_DIM, PAGE_SIZE)
        self.wrapper.plan(indptr, indices, last_page_len, *sizes, q_data_type=torch.float32)
        self.calls.append("plan")

    def run(self, q, layer):
        result = self.wrapper.run(q, self.pool(int(layer)))
        self.calls.append(f"run layer {int(layer)}")
        return result

    def pool(self, layer):
        if layer not in self.pools:
            generator = torch.Generator().manual_seed(layer)
            shape = (PAGES, PAGE_SIZE, KV_HEADS, HEAD_DIM)
            self.pools[layer] = tuple(torch.randn(shape, generator=generator) for _ in "kv")
        return self.pools[layer]

    def outputs(self):
        return {"calls": self.calls}
