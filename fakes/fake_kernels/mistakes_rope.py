"""Mistakes in rotary embedding: positions, frequencies, and which dimensions turn.

Errors are those that the sources of flashinfer 0.7.2.post1 raise (`rope.py`, `rope.cu`). What they accept nobody measured,
so faithful mode refuses it; the notes say what the sources do (`pos_enc.cuh`).
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import raises

ROTARY_DIM = Mistake(
    "rotary_dim_wrong",
    what={
        "en": "{argument} is {value}; it must be even and between 2 and head_dim = {head_dim}.",
        "zh": "{argument} 是 {value}，应当是 2 到 head_dim = {head_dim} 之间的偶数。",
    },
    fix={
        "en": "leave it out to turn the whole head; with a cache it is the cache's second dimension.",
        "zh": "不传就旋转整个 head；用 cache 时它就是 cache 的第二维。",
    },
)

ROTARY_DIM_UNALIGNED = Mistake(
    "rotary_dim_unaligned",
    what={
        "en": "{argument} is {value}; for head_dim {head_dim} it must be a multiple of {unit}.",
        "zh": "{argument} 是 {value}；head_dim 是 {head_dim} 时它必须是 {unit} 的倍数。",
    },
    fix={
        "en": "take a multiple of {unit}, or head_dim.",
        "zh": "取 {unit} 的倍数，或者就是 head_dim。",
    },
    note={
        "en": "A thread turns 8 neighbours or more at once; if they lie on both sides of the middle, or of the end, some "
        "get a wrong partner or turn that should not",
        "zh": "一个线程一次旋转相邻的 8 维或更多；它们若跨过中点或末尾，就会有几维配错搭档，或者不该转的也转了",
    },
)

POSITION_OUT_OF_CACHE = Mistake(
    "position_out_of_cache",
    what={
        "en": "{argument} of row {position} is {value}; the cache has {rows} positions.",
        "zh": "第 {position} 行的 {argument} 是 {value}，而 cache 只有 {rows} 个位置。",
    },
    fix={
        "en": "build the cache for every position up to the longest sequence.",
        "zh": "cache 要覆盖到最长序列的每个位置。",
    },
    note={
        "en": "It reads past the cache and turns by whatever lies there",
        "zh": "kernel 会读到 cache 之外，用那里的内容去旋转",
    },
)

POSITION_NEGATIVE = Mistake(
    "position_negative",
    what={
        "en": "{argument} holds a negative position at row {position}: {value}.",
        "zh": "{argument} 第 {position} 行是负的位置 {value}。",
    },
    fix={"en": "positions count from 0.", "zh": "位置从 0 数起。"},
)

POSITION_COUNT = Mistake(
    "rows_differ",
    what={
        "en": "{argument} has {got} entries; q has {expected} rows.",
        "zh": "{argument} 有 {got} 项，而 q 有 {expected} 行。",
    },
    fix={"en": "one position for each token.", "zh": "每个 token 一个位置。"},
    note={"en": "The counts are not compared", "zh": "不会核对项数"},
)

POSITION_TYPE = Mistake(
    "not_integers",
    what={
        "en": "{argument} is {dtype}; it must be int32 or int64.",
        "zh": "{argument} 的类型是 {dtype}，应当是 int32 或 int64。",
    },
    fix={"en": ".to(torch.int32).", "zh": ".to(torch.int32)。"},
)

INDPTR_TYPES = Mistake(
    "index_types_differ",
    what={
        "en": "{argument} is {got}, indptr is {expected}; the kernel is built for one type of both.",
        "zh": "{argument} 是 {got}，indptr 是 {expected}；kernel 只按一种整数类型读这两个数组。",
    },
    fix={"en": "bring both to int32.", "zh": "都转成 int32。"},
    real={"rows": raises(RuntimeError, "indptr.dtype() == offsets.dtype()", "run")},
)

INDPTR_COUNT = Mistake(
    "indptr_wrong_count",
    what={
        "en": "{argument} has {got} entries; offsets describe {batch} requests, which needs {expected}.",
        "zh": "{argument} 有 {got} 项；offsets 描述的是 {batch} 个请求，需要 {expected} 项。",
    },
    fix={
        "en": "one entry more than there are requests, the first of them 0.",
        "zh": "项数比请求数多 1，第一项是 0。",
    },
    real={"rows": raises(RuntimeError, "indptr.size(0) == batch_size + 1 ({got} vs. {expected})", "run")},
)

INDPTR_WRONG = Mistake(
    "indptr_wrong",
    what={
        "en": "{argument} must rise from 0 to the {rows} rows of q; entry {position} is {value}.",
        "zh": "{argument} 应当从 0 升到 q 的行数 {rows}；第 {position} 项是 {value}。",
    },
    fix={
        "en": "it is the running sum of tokens of each request, with a 0 first.",
        "zh": "它是各请求 token 数的累加和，第一项是 0。",
    },
    note={
        "en": "Rows outside are not written: they keep what the memory held",
        "zh": "区间之外的行不会写，内存里原来是什么就是什么",
    },
)

CACHE_TYPE = Mistake(
    "cos_sin_cache_type",
    what={
        "en": "{argument} is {got}; it must be torch.float32.",
        "zh": "{argument} 的类型是 {got}，应当是 torch.float32。",
    },
    fix={
        "en": "keep the cache in float32: at large positions half types lose the angle.",
        "zh": "cache 用 float32：位置大时半精度表示不了角度。",
    },
    real={"rows": raises(ValueError, "cos_sin_cache should be float32", "run")},
)

CACHE_TOO_WIDE = Mistake(
    "cos_sin_cache_too_wide",
    what={
        "en": "{argument} has rotary_dim {rotary} (cos and sin side by side), more than head_size {head_dim}.",
        "zh": "{argument} 的 rotary_dim 是 {rotary}（cos 与 sin 并排），大于 head_size {head_dim}。",
    },
    fix={
        "en": "a row is cos of rotary_dim / 2 angles, then their sin.",
        "zh": "一行是 rotary_dim / 2 个角的 cos，接着是它们的 sin。",
    },
    real={"rows": raises(RuntimeError, "head_dim ({head_dim}) must be >= rotary_dim ({rotary})", "run")},
)

HEAD_SIZE = Mistake(
    "head_size_wrong",
    what={
        "en": "the last dimension of {argument}, {value}, is no multiple of head_size {head_dim}.",
        "zh": "{argument} 的最后一维是 {value}，不是 head_size {head_dim} 的倍数。",
    },
    fix={
        "en": "query and key are [tokens, heads * head_size].",
        "zh": "query 和 key 的形状是 [token 数, 头数 * head_size]。",
    },
)
