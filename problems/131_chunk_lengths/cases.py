"""Cases of problem 131: first, middle and last chunks side by side, whole prompts, and chunks of one token."""


def case(*chunks):
    return {"chunks": [list(c) for c in chunks]}


def public():
    return {
        "first_chunk": case((10, 0, 4)),
        "last_and_first": case((10, 8, 2), (7, 0, 3)),
        "whole": case((3, 0, 3), (5, 2, 3)),
    }


NOTES = {
    "first_chunk": {
        "zh": "prompt 有 10 个 token，这一块只算前 4 个：KV 里也只有 4 个。",
        "en": "The prompt has 10 tokens, this chunk computes 4: there is KV of 4.",
    },
    "last_and_first": {
        "zh": "末块采样，首块不采样。",
        "en": "The last chunk is sampled from, the first is not.",
    },
    "whole": {
        "zh": "没有切开的 prompt，一块就是末块。",
        "en": "Prompts that were not cut: one chunk, which is the last.",
    },
}


def fixed():
    return {
        "one_token": case((1, 0, 1)),
        "one_token_of_many": case((9, 4, 1)),
        "last_token_alone": case((9, 8, 1)),
        "middle": case((12, 4, 4)),
        "one_short_of_the_end": case((12, 4, 7)),
        "three_kinds": case((12, 8, 4), (12, 0, 4), (12, 4, 4)),
        "chunk_between_whole_ones": case((3, 0, 3), (20, 6, 2), (4, 1, 3)),
        "none_samples": case((8, 0, 4), (8, 2, 4)),
        "all_sample": case((8, 4, 4), (2, 0, 2), (6, 5, 1)),
        "equal_counts": case((4, 0, 4), (16, 0, 4), (8, 4, 4)),
        "cached_whole": case((16, 15, 1), (16, 12, 4)),
    }


def teach():
    return {
        "whole": case((2, 0, 2)),
        "first": case((3, 0, 1)),
        "last": case((3, 2, 1)),
        "first_and_whole": case((3, 0, 2), (1, 0, 1)),
        "middle": case((4, 1, 2)),
        "two_last": case((2, 1, 1), (2, 0, 2)),
    }


def generate(rng):
    chunks = []
    for _ in range(rng.integer(1, 5)):
        prompt_len = rng.integer(1, 24)
        start = rng.choice([0, rng.below(prompt_len)])
        rest = prompt_len - start
        chunks.append((prompt_len, start, rng.choice([rest, rng.integer(1, rest)])))
    return case(*chunks)


FEATURES = {
    "cut": {"zh": "有一块不是末块", "en": "a chunk is not the last of its prompt"},
    "later": {"zh": "有一块不从 0 开始", "en": "a chunk does not begin at 0"},
}


def features(inputs):
    return {
        "cut": any(start + count < n for n, start, count in inputs["chunks"]),
        "later": any(start > 0 for _, start, _ in inputs["chunks"]),
    }
