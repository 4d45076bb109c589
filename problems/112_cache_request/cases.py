"""Cases of problem 112: nobody was first, somebody was, with and without a prefix that was locked from the start; lengths at
page borders."""


def case(row, locked, tree, length, finished, page_size=4):
    """`row` has a page for each page_size tokens of `length`, begun ones too; its first `locked` pages are the tree's."""
    return {
        "row": list(row),
        "locked": locked,
        "tree": list(tree),
        "length": length,
        "page_size": page_size,
        "finished": finished,
    }


def public():
    return {
        "first": case([5, 2, 8], 0, [], 10, True),
        "second": case([7, 3, 9, 6], 1, [7, 1, 4], 14, False),
        "second_finished": case([7, 3, 9, 6], 1, [7, 1, 4], 14, True),
    }


NOTES = {
    "first": {
        "zh": "两个整页交给缓存；没写满的那页还掉。",
        "en": "Two whole pages go to the cache, the begun one is given back.",
    },
    "second": {
        "zh": "第 1、2 页别人先交了：自己的 3、9 还掉，行改指 1、4。",
        "en": "Somebody was first with pages 1 and 2 of the row: ours, 3 and 9, go back, and the row points at 1 and 4.",
    },
    "second_finished": {"zh": "同样的请求，这次结束了。", "en": "The same request, now finished."},
}


def fixed():
    return {
        "first_goes_on": case([5, 2, 8], 0, [], 10, False),
        "page_border": case([5, 2, 8], 0, [], 12, True),
        "page_border_goes_on": case([5, 2], 0, [], 8, False),
        "one_past_a_border": case([4, 6, 1], 0, [], 9, True),
        "less_than_a_page": case([3], 0, [], 2, True),
        "less_than_a_page_goes_on": case([3], 0, [], 3, False),
        "hit_only": case([9, 4, 2], 2, [9, 4], 9, True),
        "hit_and_new": case([9, 4, 2, 7], 2, [9, 4], 16, True),
        "all_duplicates": case([1, 2, 3], 0, [6, 7, 8], 12, False),
        "all_duplicates_finished": case([1, 2, 3], 0, [6, 7, 8], 12, True),
        "duplicates_and_new": case([1, 2, 3, 4, 5], 1, [1, 12, 13], 18, False),
        "duplicates_new_finished": case([1, 2, 3, 4, 5], 1, [1, 12, 13], 18, True),
        "page_size_one": case([8, 3, 5, 4], 1, [8, 9], 4, False, page_size=1),
    }


def teach():
    return {
        "whole": case([1], 0, [], 2, True, 2),
        "begun": case([1], 0, [], 1, True, 2),
        "begun_goes_on": case([1], 0, [], 1, False, 2),
        "hit": case([1, 2], 1, [1], 4, True, 2),
        "duplicate": case([1], 0, [5], 2, False, 2),
        "duplicate_finished": case([1], 0, [5], 2, True, 2),
        "two": case([1, 2], 0, [5], 4, False, 2),
        "hit_duplicate": case([1, 2], 1, [1, 5], 4, False, 2),
    }


def generate(rng):
    page_size = rng.choice([1, 4, 4, 8])
    pages = rng.integer(1, 6)
    length = max(1, pages * page_size - rng.choice([0, 0, 1, page_size - 1]))
    pages = -(-length // page_size)
    ids = rng.shuffled(range(20))
    row, other = ids[:pages], ids[pages:]
    whole = length // page_size
    locked = rng.integer(0, whole)
    known = rng.choice([locked, rng.integer(locked, whole)])
    return case(row, locked, row[:locked] + other[: known - locked], length, rng.chance(1, 2), page_size)


FEATURES = {
    "duplicates": {"zh": "别人先交了同样的前缀", "en": "somebody was first with the same prefix"},
    "begun": {"zh": "最后一页没有写满", "en": "the last page is not full"},
    "finished": {"zh": "请求结束了", "en": "the request has finished"},
}


def features(inputs):
    return {
        "duplicates": len(inputs["tree"]) > inputs["locked"],
        "begun": inputs["length"] % inputs["page_size"] > 0,
        "finished": inputs["finished"],
    }
