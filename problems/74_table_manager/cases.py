"""Cases of problem 74: rows handed out, given back and written, page by page; double frees, and more requests than rows."""

ROWS, LENGTH = 4, 24


def take(name):
    return ("allocate", name)


def free(name):
    return ("free", name)


def prompt(name, *ids):
    return ("write_prompt", name, list(ids))


def pages(name, first, *starts):
    return ("write_pages", name, first, list(starts))


def case(page_size, *ops, running=3):
    return {
        "rows": ROWS,
        "max_seq_len": LENGTH,
        "max_running_reqs": running,
        "page_size": page_size,
        "ops": list(ops),
    }


def public():
    return {
        "two_requests": case(
            4,
            take("a"),
            take("b"),
            prompt("a", 5, 6, 7),
            pages("a", 0, 8),
            pages("b", 0, 16),
            pages("b", 4, 0),
        ),
        "row_used_again": case(
            2, take("a"), free("a"), free("a"), take("b"), pages("b", 0, 4, 10), running=1
        ),
    }


NOTES = {
    "two_requests": {
        "zh": "b 的第二页从第 4 个 token 写起。",
        "en": "b's second page is written from token 4 on.",
    },
    "row_used_again": {
        "zh": "第二次归还要抛出 RuntimeError。",
        "en": "Giving it back a second time is a RuntimeError.",
    },
}


def fixed():
    return {
        "one_row": case(1, take("a"), pages("a", 0, 7, 3, 9), prompt("a", 1, 2, 3)),
        "all_rows": case(4, take("a"), take("b"), take("c"), prompt("c", 9), prompt("b", 8), prompt("a", 7)),
        "one_too_many": case(4, take("a"), take("b"), take("c"), take("d"), free("b"), take("e")),
        "double_free": case(2, take("a"), free("a"), free("a"), take("b"), take("c"), take("d"), take("e")),
        "free_of_nobody": case(2, free("a"), take("b"), prompt("b", 3)),
        "page_size_1": case(1, take("a"), pages("a", 0, 5), pages("a", 1, 11, 2), pages("a", 3, 4)),
        "three_pages": case(4, take("a"), pages("a", 0, 4, 20, 8), prompt("a", *range(1, 12))),
        "page_after_page": case(2, take("a"), pages("a", 0, 6), pages("a", 2, 0), pages("a", 4, 14, 10)),
        "inside_a_page": case(4, take("a"), pages("a", 0, 8, 4), pages("a", 6, 12), pages("a", 8, 16)),
        "no_pages": case(4, take("a"), pages("a", 0), pages("a", 0, 12), pages("a", 4)),
        "both_tables": case(4, take("a"), prompt("a", 100, 200, 300, 400), pages("a", 0, 12), take("b")),
        "pages_then_prompt": case(4, take("a"), pages("a", 0, 12), prompt("a", 100, 200, 300), take("b")),
        "come_and_go": case(
            2,
            take("a"),
            take("b"),
            free("a"),
            take("c"),
            pages("c", 0, 4),
            pages("b", 0, 8, 2),
            free("c"),
            take("d"),
        ),
    }


def teach():
    return {
        "take": case(1, take("a"), running=1),
        "take_two": case(1, take("a"), take("b"), running=1),
        "free_twice": case(1, take("a"), free("a"), free("a"), running=2),
        "prompt": case(1, take("a"), prompt("a", 5), pages("a", 0, 3)),
        "page": case(2, take("a"), pages("a", 0, 2)),
        "second_page": case(2, take("a"), pages("a", 0, 4), pages("a", 2, 0)),
        "inside": case(2, take("a"), pages("a", 1, 4)),
    }


def generate(rng):
    page_size = rng.choice([1, 2, 4])
    running = rng.integer(1, 3)
    live, ops, at = [], [], {}
    for number in range(rng.integer(3, 9)):
        if live and rng.chance(1, 4):
            ops.append(free(live.pop(rng.below(len(live)))))
        elif len(live) < running and rng.chance(1, 2):
            live.append(f"r{number}")
            at[live[-1]] = 0
            ops.append(take(live[-1]))
        elif live:
            name = rng.choice(live)
            count = rng.integer(1, 2)
            if at[name] + count * page_size <= LENGTH:
                ops.append(pages(name, at[name], *[page_size * rng.below(20) for _ in range(count)]))
                at[name] += count * page_size
            ops.append(prompt(name, *[rng.integer(1, 99) for _ in range(rng.integer(1, 4))]))
    return case(page_size, *ops, running=running)


FEATURES = {
    "paged": {"zh": "页大小大于 1", "en": "the page size is greater than 1"},
    "freed": {"zh": "有请求归还了自己的行", "en": "some request gives its row back"},
}


def features(inputs):
    return {"paged": inputs["page_size"] > 1, "freed": any(op[0] == "free" for op in inputs["ops"])}
