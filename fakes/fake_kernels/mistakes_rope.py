"""Mistakes in rotary embedding: positions, frequencies, and which dimensions turn.

Outcomes were measured on an H200 with flashinfer 0.7.2.post1, or are errors that its sources raise (`rope.py`, `rope.cu`).
What has neither nobody measured, and faithful mode refuses it; the notes say what the sources do (`pos_enc.cuh`).
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, MISALIGNED, raises

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
    note={
        "en": "Nothing checks it: measured were 33 and 80 with heads of 64, pairs being halves, and no error came",
        "zh": "没有检查：测量过 head_dim 64 时的 33 和 80（两半配对），都没有报错",
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
    real={"rows": MISALIGNED},
    note={
        "en": "A thread loads {vector} neighbours at once, and those half a rotary_dim away: from an address that is no "
        "multiple of 16 bytes (measured with 24, 36 and 40 of 64, positions by id)",
        "zh": "一个线程一次读相邻的 {vector} 维，还要读隔开半个 rotary_dim 的那些，而那里的地址不是 16 字节的倍数"
        "（测量过 64 维中的 24、36、40，位置按 id 给出）",
    },
)

ROTARY_DIM_SPILLS = Mistake(
    ROTARY_DIM_UNALIGNED.code,
    what=ROTARY_DIM_UNALIGNED.what,
    fix=ROTARY_DIM_UNALIGNED.fix,
    real={"rows": GARBAGE},
    note={
        "en": "A thread turns {vector} neighbours at once, so dimensions from {value} on turn as well: slowly, at small "
        "positions it can't be seen (measured at positions 1 to 3: no difference)",
        "zh": "一个线程一次旋转相邻的 {vector} 维，所以第 {value} 维起的几维也跟着转了：转得很慢，位置小时看不出来"
        "（在位置 1 到 3 上测量：没有差别）",
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
        "en": "It reads past the cache: what lies close behind it turns the row (measured one row behind: zeros, and a row "
        "of zeros came out), far away the access is illegal",
        "zh": "kernel 会读到 cache 之外：紧挨在后面的内容会被拿来旋转（测量时超出一行，那里是 0，结果整行为 0），"
        "远处则是非法访问",
    },
)

POSITION_NEGATIVE = Mistake(
    "position_negative",
    what={
        "en": "{argument} holds a negative position at row {position}: {value}.",
        "zh": "{argument} 第 {position} 行是负的位置 {value}。",
    },
    fix={"en": "positions count from 0.", "zh": "位置从 0 数起。"},
    note={
        "en": "Positions by id may be negative: rows turn by the negative angle, as measured; nobody measured it with a "
        "cache, where it reads in front of it, or with offsets",
        "zh": "按 id 给出的位置可以是负数：按负的角度旋转，测量结果如此；用 cache 时会读到它前面，与 offsets 一样没有"
        "测量过",
    },
)

POSITION_COUNT = Mistake(
    "rows_differ",
    what={
        "en": "{argument} has {got} entries; q has {expected} rows.",
        "zh": "{argument} 有 {got} 项，而 q 有 {expected} 行。",
    },
    fix={"en": "one position for each token.", "zh": "每个 token 一个位置。"},
    note={
        "en": "The counts are not compared: with too few, further rows turn by what lies behind the positions (measured)",
        "zh": "不会核对项数：少了的话，后面的行会按位置张量之后的内容旋转（测量过）",
    },
)

POSITION_TYPE = Mistake(
    "not_integers",
    what={
        "en": "{argument} is {dtype}; it must be int32 or int64.",
        "zh": "{argument} 的类型是 {dtype}，应当是 int32 或 int64。",
    },
    fix={"en": ".to(torch.int32).", "zh": ".to(torch.int32)。"},
    real={"rows": raises(RuntimeError, "failed to dispatch data type", "run")},
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
        "en": "Rows outside are not written: they keep what the memory held (measured with an end that is too small)",
        "zh": "区间之外的行不会写，内存里原来是什么就是什么（测量的是最后一项偏小的情况）",
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
