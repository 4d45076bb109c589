"""Cases of problem 205: a few batches of one shape, so that all of them fit the same buffers."""

from itertools import accumulate

import torch

from judge.core.rng import Rng

PAGE_SIZE, PAGES = 4, 24


def batch(lengths, pages):
    counts = [-(-n // PAGE_SIZE) for n in lengths]
    return {
        "indptr": torch.tensor([0, *accumulate(counts)], dtype=torch.int32),
        "indices": torch.tensor(pages[: sum(counts)], dtype=torch.int32),
        "last_page_len": torch.tensor([(n - 1) % PAGE_SIZE + 1 for n in lengths], dtype=torch.int32),
    }


def case(rng, batches, requests, layers):
    """Batches with as many pages each, in another order of lengths and on other pages."""
    counts = [rng.integer(1, 3) for _ in range(requests)]
    made = []
    for _ in range(batches):
        lengths = [PAGE_SIZE * (n - 1) + rng.integer(1, PAGE_SIZE) for n in rng.shuffled(counts)]
        made.append(batch(lengths, rng.shuffled(range(PAGES))))
    return {"batches": made, "layers": layers}


def named(name, *given):
    return case(Rng(f"205 {name}".encode()), *given)


def public():
    return {"three_batches": named("p1", 3, 1, 2), "one_batch": named("p2", 1, 2, 2)}


NOTES = {
    "three_batches": {"zh": "三批，每批两层。", "en": "Three batches of two layers."},
    "one_batch": {"zh": "只有一批：没有人可等。", "en": "A single batch: there's nobody to wait for."},
}


def fixed():
    return {
        "two_batches": named("f1", 2, 2, 3),
        "two_requests": named("f2", 3, 2, 2),
        "one_layer": named("f3", 4, 2, 1),
        "many_batches": named("f4", 6, 1, 2),
        "many_layers": named("f5", 2, 2, 6),
        "four_requests": named("f6", 3, 4, 2),
        "single": named("f7", 1, 3, 3),
        "single_layer_of_one": named("f8", 1, 1, 1),
    }


def teach():
    return {
        "one": named("t1", 1, 1, 1),
        "two": named("t2", 2, 1, 1),
        "two_layers": named("t3", 2, 1, 2),
        "three": named("t4", 3, 1, 1),
    }


def generate(rng):
    return case(rng, rng.integer(2, 5), rng.integer(1, 3), rng.integer(1, 3))


FEATURES = {
    "several": {"zh": "不止一批", "en": "there is more than one batch"},
    "layers": {"zh": "不止一层", "en": "there is more than one layer"},
}


def features(inputs):
    return {"several": len(inputs["batches"]) > 1, "layers": inputs["layers"] > 1}
