"""Cases of problem 110: requests that fit exactly, by one token, after another one, or never."""


def case(waiting, free, reserved=0, total=10, page_size=4):
    return {
        "waiting": [list(r) for r in waiting],
        "free_pages": free,
        "reserved_pages": reserved,
        "total_pages": total,
        "page_size": page_size,
    }


def public():
    return {
        "two_fit": case([(1, 5, 4), (2, 9, 8), (3, 1, 1)], free=6),
        "never_fits": case([(1, 40, 2), (2, 4, 4)], free=10),
        "reserved": case([(7, 3, 2)], free=5, reserved=5),
    }


NOTES = {
    "two_fit": {
        "zh": "1 要 2 页，2 要 4 页，6 页正好用完；3 只要 1 页，也只能等。",
        "en": "1 needs 2 pages, 2 needs 4, and 6 are used up; 3 needs just 1, and waits.",
    },
    "never_fits": {
        "zh": "1 要 11 页，整个池子才 10 页。",
        "en": "1 needs 11 pages of a pool that has 10.",
    },
    "reserved": {
        "zh": "5 页空着，但都答应给在跑的请求了。",
        "en": "5 pages are free, and all promised to running requests.",
    },
}


def fixed():
    return {
        "nobody": case([], free=3),
        "exact_fit": case([(1, 8, 1)], free=2),
        "last_token_needs_no_page": case([(1, 5, 4)], free=2),
        "one_token_over": case([(1, 5, 5)], free=2),
        "prompt_fits_answer_does_not": case([(1, 4, 8)], free=2),
        "small_one_behind": case([(1, 12, 9), (2, 1, 1), (3, 2, 2)], free=4),
        "exactly_the_pool": case([(1, 33, 8)], free=10),
        "one_more_than_the_pool": case([(1, 33, 9), (2, 3, 2)], free=10),
        "never_fits_in_the_middle": case([(1, 4, 1), (2, 50, 50), (3, 4, 1)], free=2),
        "never_fits_behind_waiting": case([(1, 20, 1), (2, 41, 1), (3, 1, 1)], free=3),
        "waits_for_busy_pool": case([(1, 24, 1)], free=2, reserved=1),
        "reserved_partly": case([(5, 7, 2), (6, 7, 2), (4, 1, 1)], free=6, reserved=2),
        "page_size_one": case([(1, 3, 2), (2, 2, 3)], free=8, page_size=1),
        "never_fits_by_answer": case([(9, 4, 60), (8, 4, 2)], free=10),
    }


def teach():
    return {
        "one": case([(1, 2, 2)], free=1, total=2, page_size=2),
        "last_token": case([(1, 1, 2)], free=1, total=2, page_size=2),
        "answer": case([(1, 2, 3)], free=1, total=2, page_size=2),
        "overtaking": case([(1, 4, 1), (2, 1, 1)], free=1, total=2, page_size=2),
        "never": case([(1, 5, 1), (2, 1, 1)], free=1, total=2, page_size=2),
        "reserved": case([(1, 1, 1)], free=1, reserved=1, total=2, page_size=2),
        "two": case([(1, 1, 1), (2, 1, 1)], free=1, total=2, page_size=2),
    }


def generate(rng):
    total = rng.integer(6, 16)
    free = rng.integer(0, total)
    waiting = [(i + 1, rng.integer(1, 30), rng.integer(1, 24)) for i in range(rng.integer(1, 6))]
    return case(waiting, free, rng.integer(0, free), total, rng.choice([1, 4, 4]))


FEATURES = {
    "reserved": {"zh": "有页已经答应给在跑的请求", "en": "pages are promised to running requests"},
    "never": {"zh": "有的请求比整个池子还大", "en": "a request is larger than the whole pool"},
}


def features(inputs):
    size = inputs["page_size"]
    needs = [-(-(p + m - 1) // size) for _, p, m in inputs["waiting"]]
    return {"reserved": inputs["reserved_pages"] > 0, "never": any(n > inputs["total_pages"] for n in needs)}
