"""Runs problem 124: a list of operations on a fresh tree, in which the submission cuts the nodes; then all of the tree is
looked at."""

from itertools import count

import torch

from minisgl.kvcache.radix_cache import RadixPrefixCache


class Broken(Exception):
    """The tree has come to a state that an earlier cut must have left."""


def run(submission, inputs):
    cache = RadixPrefixCache(inputs["page_size"])
    split, raised = cache._split, []

    def watched(node, at):
        if node.parent is None or not 0 < at < len(node.key):
            raise Broken
        try:
            return split(node, at)
        except Exception as error:
            raised.append(error)
            raise

    cache._split = watched
    places = count(100)
    found, handles = [], []
    for kind, what in inputs["ops"]:
        try:
            found.append(operate(cache, kind, what, places, handles))
        except (Broken, RuntimeError, LookupError, AssertionError):
            if raised:  # the submission's own error is for its author to see
                raise
            found.append("refused")
    return {
        "nodes": list(describe(cache._root, 0)),
        "reads": [h.matched_indices().tolist() for h in handles if h is not None],
        "found": found,
        "sizes": [int(n) for n in cache.size_info()],
        "intact": is_intact(cache),
    }


def operate(cache, kind, what, places, handles):
    if kind == "evict":
        return cache.evict(what).tolist()
    if kind == "unlock":
        handle, handles[what] = handles[what], None
        cache.unlock(handle)
        return "unlocked"
    ids = torch.tensor(what, dtype=torch.int32)
    if kind == "lock":
        handle = cache.match_prefix(ids)
        cache.lock(handle)
        handles.append(handle)
        return handle.cached_len
    values = torch.tensor([next(places) for _ in what], dtype=torch.int32)
    return int(cache.insert_prefix(ids, values)[0])


def describe(node, start):
    """Every node below, parents before children, children in order of their tokens."""
    for child in sorted(node.children.values(), key=lambda n: n.key.tolist()):
        yield [start, child.key.tolist(), child.value.tolist(), child.locks]
        yield from describe(child, start + len(child.key))


def is_intact(cache):
    try:
        cache.check_integrity()
    except RuntimeError:
        return False
    return cache._node_count == len(cache.nodes()) - 1
