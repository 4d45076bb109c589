"""Cases of problem 202: a few batches one after another, a few layers each."""

from itertools import accumulate

import torch

from judge.core.rng import Rng

PAGE_SIZE, PAGES = 4, 24


def batch(lengths, pages):
    """`lengths`: KV length of each request; `pages`: ids to hand out, in order."""
    counts = [-(-n // PAGE_SIZE) for n in lengths]
    return {
        "indptr": torch.tensor([0, *accumulate(counts)], dtype=torch.int32),
        "indices": torch.tensor(pages[: sum(counts)], dtype=torch.int32),
        "last_page_len": torch.tensor([(n - 1) % PAGE_SIZE + 1 for n in lengths], dtype=torch.int32),
    }


def steps(seed, *lengths, layers=3, first_layer=0, reuse_buffers=False):
    """Batches of these lengths, each with pages of a freshly shuffled pool."""
    rng = Rng(seed.encode())
    batches = [batch(n, rng.shuffled(range(PAGES))) for n in lengths]
    return {"batches": batches, "layers": layers, "first_layer": first_layer, "reuse_buffers": reuse_buffers}


def public():
    return {
        "one_batch": steps("one", [5, 2]),
        "two_batches": steps("two", [5, 2], [3, 9, 4], layers=2),
        "same_size": steps("same", [5, 2], [9, 7], layers=2),
        "one_layer": steps("layer", [6], [7], [8], layers=1),
    }


NOTES = {
    "one_batch": {
        "zh": "一批、三层：plan 一次，run 三次。",
        "en": "One batch, three layers: one plan, three runs.",
    },
    "two_batches": {"zh": "两批，请求数不同。", "en": "Two batches with different numbers of requests."},
    "same_size": {
        "zh": "两批的请求数相同，长度不同。",
        "en": "Two batches of as many requests, with other lengths.",
    },
    "one_layer": {"zh": "只有一层：每层都要 plan。", "en": "A single layer: every call plans."},
}


def fixed():
    return {
        "grows_by_one": steps("grow", [7, 3], [8, 4], [9, 5]),
        "same_lengths_other_pages": steps("pages", [5, 6], [5, 6], [5, 6]),
        "later_stage": steps("stage", [5, 1, 4], [2, 3, 8], first_layer=4),
        "buffers_reused": steps("buffers", [4, 9], [8, 2], [5, 5], reuse_buffers=True),
        "buffers_reused_later_stage": steps("both", [4, 9], [8, 3], first_layer=2, reuse_buffers=True),
        "sizes_up_and_down": steps("sizes", [3], [3, 6], [3], [8, 1, 2], [4]),
        "many_layers": steps("many", [9, 12, 4, 1], [10, 13, 5, 2], layers=8),
        "one_layer_reused": steps("single", [4], [5], [6], layers=1, reuse_buffers=True),
        "two_sizes_then_back": steps("back", [9, 2], [4], [6, 5], reuse_buffers=True),
    }


def teach():
    return {
        "two_layers": steps("t1", [2], layers=2),
        "two_batches": steps("t2", [2], [3], layers=1),
        "two_and_two": steps("t3", [2], [6], layers=2),
        "other_pages": steps("t4", [2], [2], layers=1),
        "later_stage": steps("t5", [2], layers=1, first_layer=1),
        "buffers_reused": steps("t6", [2], [3], layers=1, reuse_buffers=True),
    }


def generate(rng):
    size = rng.integer(1, 4)
    count = rng.integer(2, 4)
    sizes = [size if rng.chance(2, 3) else rng.integer(1, 4) for _ in range(count)]
    return {
        "batches": [batch([rng.integer(1, 20) for _ in range(n)], rng.shuffled(range(PAGES))) for n in sizes],
        "layers": rng.integer(1, 4),
        "first_layer": rng.choice([0, 0, 2]),
        "reuse_buffers": rng.chance(1, 3),
    }


FEATURES = {
    "layers": {"zh": "不止一层", "en": "there is more than one layer"},
    "batches": {"zh": "不止一批", "en": "there is more than one batch"},
    "stage": {
        "zh": "第一层的编号不是 0（流水线的后一段）",
        "en": "the first layer is not 0 (a later pipeline stage)",
    },
    "reused": {"zh": "几批共用同一组缓冲区", "en": "batches share their buffers"},
}


def features(inputs):
    return {
        "layers": inputs["layers"] > 1,
        "batches": len(inputs["batches"]) > 1,
        "stage": inputs["first_layer"] > 0,
        "reused": inputs["reuse_buffers"],
    }
