"""The ways to call flash_attn_with_kvcache and flash_attn_varlen_func wrongly, and what FlashAttention 3 of sgl_kernel
(sglang-kernel 0.4.6) did with each on an H200.

Outcomes are measurements, messages included. What has none nobody measured.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, HARMLESS, ILLEGAL, NAN, Outcome, raises


def _says(message: str) -> dict[str, Outcome]:
    return {"sgl": raises(RuntimeError, message, "run")}


NOT_INT32 = Mistake(
    "flash_not_int32",
    what={
        "en": "{argument} is {dtype}; it must be int32.",
        "zh": "{argument} 的类型是 {dtype}，必须是 int32。",
    },
    fix={
        "en": "create it as int32; torch.cumsum turns int32 into int64 unless it is in place or "
        "has dtype=torch.int32.",
        "zh": "用 int32 创建；torch.cumsum 会把 int32 变成 int64，除非原地做或者写 dtype=torch.int32。",
    },
    real=_says("{real_name} must have dtype {real_dtype}"),
)

NOT_CONTIGUOUS = Mistake(
    "flash_not_contiguous",
    what={
        "en": "{argument} is not contiguous (strides {stride}).",
        "zh": "{argument} 不连续（步长 {stride}）。",
    },
    fix={"en": "call .contiguous().", "zh": "调用 .contiguous()。"},
    real=_says("seqused_k must be contiguous"),
    note={
        "en": "The Python in front of it copies a q, page_table or cu_seqlens_q that isn't, but not cache_seqlens",
        "zh": "它前面的 Python 会复制不连续的 q、page_table 和 cu_seqlens_q，却不复制 cache_seqlens",
    },
)

ROWS_LEFT = Outcome("garbage", message="rows beyond max_seqlen_q")
"""Garbage in these rows only; the message tells it from other garbage."""

TILE = 64
"""Packed rows (rows times query heads a KV head) of the smallest tile: a guess at how far the rows reach that are computed
beyond max_seqlen_q. Measured were 20 of them."""


def reached(max_seqlen_q: int, group: int) -> int:
    """Rows of a request that the tiles for max_seqlen_q cover. group: query heads a KV head."""
    return -(-max_seqlen_q * group // TILE) * TILE // group


MAX_SEQLEN_Q_MISSING = Mistake(
    "max_seqlen_q_missing",
    what={
        "en": "cu_seqlens_q is given without max_seqlen_q.",
        "zh": "给了 cu_seqlens_q，却没有给 max_seqlen_q。",
    },
    fix={
        "en": "pass the largest number of new tokens of any request.",
        "zh": "传入各请求新 token 数的最大值。",
    },
    real=_says("max_seqlen_q must be provided if cu_seqlens_q is provided"),
)

MAX_SEQLEN_Q_TOO_SMALL = Mistake(
    "max_seqlen_q_too_small",
    what={
        "en": "max_seqlen_q is {value}, request {request} has {needed} new tokens.",
        "zh": "max_seqlen_q 是 {value}，而请求 {request} 有 {needed} 个新 token。",
    },
    fix={
        "en": "pass the largest number of new tokens of any request: {needed}.",
        "zh": "传入各请求新 token 数的最大值：{needed}。",
    },
    real={"sgl": ROWS_LEFT},
    note={
        "en": "It decides how many tiles of rows there are. Rows beyond the last tile are not computed, they keep whatever the "
        "memory held; rows within it are right: of 3, 5 and 2 rows with 2 for it all were",
        "zh": "它决定有几个行分块。超出最后一块的行不会计算，保留显存里原有的内容；块内的行是对的：各有 3、5、2 行时"
        "传 2，所有行都对",
    },
)

CU_SEQLENS_Q_SHAPE = Mistake(
    "cu_seqlens_q_wrong",
    what={
        "en": "cu_seqlens_q is {entries}: {problem}.",
        "zh": "cu_seqlens_q 是 {entries}：{problem_zh}。",
    },
    fix={
        "en": "0 first, then the running sum of new tokens of each request; it ends at q.shape[0].",
        "zh": "先是 0，然后是各请求新 token 数的累加和，最后一项等于 q.shape[0]。",
    },
    note={
        "en": "Only the number of entries is compared, with the rows of page_table. A first entry that isn't 0 and a decrease "
        "were measured: rows that no request has are not computed",
        "zh": "只核对项数，与 page_table 的行数比较。测量过第一项不是 0 和中途变小的情况：没有归属的行不会计算",
    },
)

MAX_SEQLENS_MISSING = Mistake(
    "max_seqlens_missing",
    what={"en": "{argument} is missing.", "zh": "缺少 {argument}。"},
    fix={
        "en": "pass max_seqlen_q and max_seqlen_k: the largest q and KV lengths of any request.",
        "zh": "传入 max_seqlen_q 和 max_seqlen_k：各请求 q 长度和 KV 长度的最大值。",
    },
    real={"sgl": raises(ValueError, "max_seqlen_q and max_seqlen_k are required for FA3", "run")},
)

MAX_SEQLEN_K_TOO_SMALL = Mistake(
    "max_seqlen_k_too_small",
    what={
        "en": "max_seqlen_k is {value}, request {request} has {needed} KV tokens.",
        "zh": "max_seqlen_k 是 {value}，而请求 {request} 有 {needed} 个 KV token。",
    },
    fix={
        "en": "pass the largest KV length of any request: {needed}.",
        "zh": "传入各请求 KV 长度的最大值：{needed}。",
    },
    real={"sgl": HARMLESS},
    note={
        "en": "Measured once, with 10 for lengths up to 40",
        "zh": "只测量过一次：长度最大 40 时传 10",
    },
)

CU_SEQLENS_K_SHAPE = Mistake(
    "cu_seqlens_k_wrong",
    what={
        "en": "cu_seqlens_k is {entries}: {problem}.",
        "zh": "cu_seqlens_k 是 {entries}：{problem_zh}。",
    },
    fix={
        "en": "0 first, then the running sum of each request's KV length in tokens; it ends at k.shape[0].",
        "zh": "先是 0，然后是各请求 KV 长度（以 token 计）的累加和，最后一项等于 k.shape[0]。",
    },
    note={
        "en": "Only the number of entries is compared, with cu_seqlens_q. Measured were a first entry that isn't 0, a decrease "
        "(that request sees nothing) and an end beyond k, whose rows were not there",
        "zh": "只核对项数，与 cu_seqlens_q 比较。测量过第一项不是 0、中途变小（那个请求什么也看不到）和最后一项超出 k "
        "的行数的情况",
    },
)

CACHE_SEQLENS_SHAPE = Mistake(
    "cache_seqlens_wrong_count",
    what={
        "en": "cache_seqlens has shape {got}; there are {expected} requests.",
        "zh": "cache_seqlens 的形状是 {got}，而请求有 {expected} 个。",
    },
    fix={"en": "one entry for each request.", "zh": "每个请求一项。"},
    real=_says("seqused_k must have shape (batch_size)"),
)

CACHE_SEQLENS_NEGATIVE = Mistake(
    "cache_seqlens_negative",
    what={
        "en": "cache_seqlens[{position}] is negative.",
        "zh": "cache_seqlens[{position}] 是负数。",
    },
    fix={
        "en": "it is the KV length of the request, new tokens included.",
        "zh": "它是这个请求的 KV 长度，包含新 token。",
    },
    real={"sgl": GARBAGE},
    note={
        "en": "The request sees nothing and its rows are 0",
        "zh": "这个请求什么也看不到，它的行全是 0",
    },
)

CU_SEQLENS_K_DIFFERS = Mistake(
    "cu_seqlens_k_differs",
    what={
        "en": "cache_seqlens[{position}] is {value}, but cu_seqlens_k_new gives request {position} "
        "the length {should}.",
        "zh": "cache_seqlens[{position}] 是 {value}，而按 cu_seqlens_k_new 请求 {position} 的长度是"
        " {should}。",
    },
    fix={
        "en": "cache_seqlens holds KV lengths in tokens (not pages), new tokens included.",
        "zh": "cache_seqlens 是以 token 计（不是页数）的 KV 长度，包含新 token。",
    },
    real={"sgl": GARBAGE},
    note={
        "en": "cu_seqlens_k_new is ignored without k; page counts in place of lengths were accepted",
        "zh": "没有 k 时会忽略 cu_seqlens_k_new；把页数当成长度也会被接受",
    },
)

PAGE_TABLE_SHAPE = Mistake(
    "page_table_shape",
    what={
        "en": "page_table has shape {got}; it must be [{expected}, most pages of a request].",
        "zh": "page_table 的形状是 {got}，应当是 [{expected}, 最多的页数]。",
    },
    fix={"en": "one row for each request.", "zh": "每个请求一行。"},
    real=_says("{message}"),
)

NO_PAGE_TABLE = Mistake(
    "page_table_missing",
    what={
        "en": "without page_table each request owns one row of k_cache, which has {got}; there are {expected} requests.",
        "zh": "没有 page_table 时每个请求占 k_cache 的一行，而它有 {got} 行，请求有 {expected} 个。",
    },
    fix={
        "en": "pass page_table, int32 [requests, most pages of a request], for a cache in pages.",
        "zh": "缓存是分页的，就要传 page_table：int32，形状 [请求数, 最多的页数]。",
    },
    real=_says("batch_size must be equal to batch_size_k"),
)

PAGE_TABLE_NARROW = Mistake(
    "page_table_too_narrow",
    what={
        "en": "request {request} has {value} tokens in cache_seqlens; a row of page_table has room "
        "for {room} "
        "({width} pages of {page_size}).",
        "zh": "请求 {request} 的 cache_seqlens 是 {value}；page_table 的一行只容得下 {room} 个 token"
        "（{width} 页，每页 {page_size}）。",
    },
    fix={
        "en": "give each row ceil(longest / page_size) pages.",
        "zh": "每行要有 ceil(最长 / page_size) 页。",
    },
    real={"sgl": GARBAGE},
)

TOKEN_POSITIONS = Mistake(
    "page_table_holds_token_positions",
    what={
        "en": "page_table holds token positions ({value} in row {row}), not page numbers; the "
        "cache has {pages} pages "
        "of {page_size}.",
        "zh": "page_table 里是 token 位置（第 {row} 行有 {value}），不是页号；缓存有 {pages} 页，每"
        "页 {page_size}。",
    },
    fix={
        "en": "take every page_size-th position and divide: positions[::page_size] // page_size.",
        "zh": "每隔 page_size 取一个位置再整除：positions[::page_size] // page_size。",
    },
    real={"sgl": NAN},
)

PAGE_OUT_OF_RANGE = Mistake(
    "page_out_of_range",
    what={
        "en": "page_table row {row} holds page {value}, the cache has {pages} pages.",
        "zh": "page_table 第 {row} 行有第 {value} 页，而缓存只有 {pages} 页。",
    },
    fix={"en": "pages are numbered 0..{last}.", "zh": "页号是 0..{last}。"},
    real={"sgl": ILLEGAL},
)

PAGE_NEGATIVE = Mistake(
    "page_negative",
    what={
        "en": "page_table row {row} holds a negative page number within the request's length, {value}.",
        "zh": "page_table 第 {row} 行在请求的长度之内有负的页号 {value}。",
    },
    fix={
        "en": "only entries beyond the length may be anything; -1 often means a row that was not filled.",
        "zh": "只有超出长度的项可以任意；出现 -1 多半是这一行没有填满。",
    },
    real={"sgl": GARBAGE},
    note={
        "en": "It reads what lies in front of the cache (measured with -1)",
        "zh": "会读到缓存前面的内存（测量的是 -1）",
    },
)

SHAPE = Mistake(
    "flash_shape",
    what={
        "en": "{argument} has shape {got}; needed is {expected}.",
        "zh": "{argument} 的形状是 {got}，需要的是 {expected}。",
    },
    fix={
        "en": "q [tokens, heads, head_dim] with cu_seqlens_q, else [batch, tokens, heads, head_dim]; caches "
        "[pages, page_size, kv_heads, head_dim].",
        "zh": "有 cu_seqlens_q 时 q 是 [token 数, 头, 维]，否则是 [batch, token 数, 头, 维]；缓存是 "
        "[页数, 页大小, KV 头, 维]。",
    },
)

HEADS = Mistake(
    "heads_not_divisible",
    what={
        "en": "{value} query heads can't be shared by {kv} KV heads.",
        "zh": "{value} 个 query 头不能由 {kv} 个 KV 头平分。",
    },
    fix={
        "en": "query heads must be a multiple of KV heads.",
        "zh": "query 头数必须是 KV 头数的整数倍。",
    },
    real=_says("Number of heads in key/value must divide number of heads in query"),
)

DTYPES_DIFFER = Mistake(
    "flash_dtypes_differ",
    what={
        "en": "q is {value}, {argument} is {other}.",
        "zh": "q 是 {value}，{argument} 是 {other}。",
    },
    fix={"en": "q, k_cache and v_cache have one type.", "zh": "q、k_cache、v_cache 类型相同。"},
    real=_says("query and key must have the same dtype"),
)

DTYPE = Mistake(
    "flash_dtype",
    what={"en": "q is {value}.", "zh": "q 是 {value}。"},
    fix={
        "en": "use float16 or bfloat16 (the fake also takes float32).",
        "zh": "用 float16 或 bfloat16（假 kernel 也接受 float32）。",
    },
    real=_says("FlashAttention only supports fp16, bf16, and fp8_e4m3 data type"),
)

LAST_DIM_STRIDE = Mistake(
    "last_dim_not_contiguous",
    what={
        "en": "the last dimension of {argument} has stride {value}.",
        "zh": "{argument} 最后一维的步长是 {value}。",
    },
    fix={"en": "call .contiguous().", "zh": "调用 .contiguous()。"},
    real={"sgl": raises(AssertionError, "{argument} must have contiguous last dimension", "run")},
)

LAST_DIM_STRIDE_VARLEN = Mistake(
    LAST_DIM_STRIDE.code,
    what=LAST_DIM_STRIDE.what,
    fix=LAST_DIM_STRIDE.fix,
    real=_says("Input tensor must have contiguous last dimension"),
)
