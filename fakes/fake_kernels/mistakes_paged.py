"""What stands in a paged batch: page numbers, lengths of last pages, lengths of sequences, heads; what can
be wrong with them and what flashinfer 0.7.2.post1 did with each mistake on an H200.

Written as in `mistakes_indptr`.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.mistakes_indptr import NOT_CONTIGUOUS
from fake_kernels.outcomes import DIVISION_BY_ZERO, GARBAGE, HARMLESS, ILLEGAL, NAN, Outcome, Path, raises

LAST_PAGE_LEN_ZERO = Mistake(
    "last_page_len_zero",
    what={
        "en": "{argument} is 0 for request {position}, which has {pages} page(s): a full last page "
        "holds {page_size}.",
        "zh": "请求 {position} 有 {pages} 页，{argument} 却是 0：最后一页满时应当是 {page_size}。",
    },
    fix={
        "en": "it is in 1..page_size: (length - 1) % page_size + 1.",
        "zh": "取值是 1..page_size：(长度 - 1) % page_size + 1。",
    },
    real={"dec": GARBAGE, "tc": GARBAGE, "fa2": GARBAGE, "fa3": GARBAGE},
    note={
        "en": "The request loses its whole last page",
        "zh": "这个请求会整整少掉最后一页",
    },
)

LAST_PAGE_LEN_IS_LENGTH = Mistake(
    "last_page_len_is_sequence_length",
    what={
        "en": "{argument} of request {position} is the length of the sequence, {value}; a page "
        "holds {page_size}.",
        "zh": "请求 {position} 的 {argument} 是整个序列的长度 {value}；一页只有 {page_size} 个位置。",
    },
    fix={
        "en": "count only the tokens in the last page: (length - 1) % page_size + 1 = {should}.",
        "zh": "只数最后一页里的 token：(长度 - 1) % page_size + 1 = {should}。",
    },
    real={"dec": GARBAGE, "tc": GARBAGE, "fa2": GARBAGE, "fa3": ILLEGAL},
)

LAST_PAGE_LEN_TOO_LARGE = Mistake(
    "last_page_len_too_large",
    what={
        "en": "{argument} of request {position} is {value}; a page holds only {page_size} tokens.",
        "zh": "请求 {position} 的 {argument} 是 {value}，一页只有 {page_size} 个位置。",
    },
    fix={
        "en": "it is in 1..page_size: (length - 1) % page_size + 1.",
        "zh": "取值是 1..page_size：(长度 - 1) % page_size + 1。",
    },
    real={"dec": GARBAGE, "tc": GARBAGE, "fa2": GARBAGE, "fa3": ILLEGAL},
    note={
        "en": "The kernel walks on into the pages of the next request",
        "zh": "kernel 会继续读到下一个请求的页里去",
    },
)

LAST_PAGE_LEN_NEGATIVE = Mistake(
    "last_page_len_negative",
    what={
        "en": "{argument} of request {position} is negative: {value}.",
        "zh": "请求 {position} 的 {argument} 是负数：{value}。",
    },
    fix={
        "en": "it is in 1..page_size: (length - 1) % page_size + 1.",
        "zh": "取值是 1..page_size：(长度 - 1) % page_size + 1。",
    },
    real={"dec": GARBAGE, "tc": GARBAGE, "fa2": GARBAGE, "fa3": GARBAGE},
    note={
        "en": "The length is (pages - 1) * page_size + this number; measured where that stays positive",
        "zh": "长度按 (页数 - 1) * page_size 加上这个数来算；测量的是结果仍为正数的情况",
    },
)

LAST_PAGE_LEN_OF_EMPTY = Mistake(
    "last_page_len_of_empty_request",
    what={
        "en": "request {position} has no pages but {argument} {value}: plan computes length {value} for it, "
        "and fa3 goes by what plan computed.",
        "zh": "请求 {position} 没有页，{argument} 却是 {value}：plan 算出的长度是 {value}，而 fa3 以它为准。",
    },
    fix={
        "en": "write 0 for a request without pages, or pass seq_lens.",
        "zh": "没有页的请求写 0，或者传入 seq_lens。",
    },
    real={"dec": HARMLESS, "tc": HARMLESS, "fa2": HARMLESS, "fa3": GARBAGE},
    note={
        "en": "dec, tc and fa2 take 0 from the equal neighbours in indptr and don't mind; fa3 attends to pages of others",
        "zh": "dec、tc、fa2 看到 indptr 相邻两项相等就取 0，不受影响；fa3 会去读别的请求的页",
    },
)

INDICES_NOT_INT32 = Mistake(
    "indices_not_int32",
    what={
        "en": "{argument} is {dtype}; the kernels read int32.",
        "zh": "{argument} 的类型是 {dtype}；kernel 按 int32 读。",
    },
    fix={"en": "create it as int32, or .to(torch.int32).", "zh": "用 int32 创建，或者 .to(torch.int32)。"},
    real={
        "dec": raises(RuntimeError, "paged_kv_indices.dtype() == dl_int32 (int64 vs. int32)", "run"),
        "tc": GARBAGE,
        "fa2": GARBAGE,
        "fa3": GARBAGE,
    },
    note={
        "en": "Read as int32, every other entry is a 0: page 0 in place of real pages",
        "zh": "按 int32 读时每隔一项就是 0，也就是用第 0 页代替了真正的页",
    },
)

LAST_PAGE_LEN_NOT_INT32 = Mistake(
    "last_page_len_not_int32",
    what={
        "en": "{argument} is {dtype}; the kernels read int32.",
        "zh": "{argument} 的类型是 {dtype}；kernel 按 int32 读。",
    },
    fix={"en": "create it as int32, or .to(torch.int32).", "zh": "用 int32 创建，或者 .to(torch.int32)。"},
    real={
        "dec": raises(RuntimeError, "paged_kv_last_page_len.dtype() == dl_int32 (int64 vs. int32)", "run"),
        "tc": GARBAGE,
        "fa2": GARBAGE,
        "fa3": GARBAGE,
    },
)

INDICES_NOT_CONTIGUOUS = Mistake(
    NOT_CONTIGUOUS.code,
    what=NOT_CONTIGUOUS.what,
    fix=NOT_CONTIGUOUS.fix,
    real={"dec": GARBAGE, "tc": GARBAGE, "fa2": GARBAGE, "fa3": GARBAGE},
)

INDICES_TOO_SHORT = Mistake(
    "indices_too_short",
    what={
        "en": "{argument} has {got} entries, {indptr} ends at {expected}.",
        "zh": "{argument} 有 {got} 项，而 {indptr} 的最后一项是 {expected}。",
    },
    fix={
        "en": "list every page of every request, in order; {indptr}[-1] counts them.",
        "zh": "依次列出每个请求的每一页；{indptr}[-1] 是总页数。",
    },
    real={"dec": GARBAGE, "tc": GARBAGE, "fa2": GARBAGE, "fa3": GARBAGE},
    note={
        "en": "indices are never compared with indptr: the kernel reads past the end. Measured with indptr in tokens, and "
        "with a slice of a longer tensor: what was cut off still lay behind it and was read",
        "zh": "不会用 indptr 核对 indices：kernel 会读到数组末尾之外。测量过两种：indptr 以 token 计，以及截取较长张量的前"
        "一段——截掉的部分还在后面的内存里，照样被读到",
    },
)

PAGE_NEGATIVE = Mistake(
    "page_negative",
    what={
        "en": "{argument} holds a negative page number, {value}.",
        "zh": "{argument} 里有负的页号 {value}。",
    },
    fix={
        "en": "pages are numbered from 0; -1 often means a row of the page table that was not filled.",
        "zh": "页号从 0 开始；出现 -1 多半是 page table 的行没有填满。",
    },
    real={"dec": GARBAGE, "tc": NAN, "fa2": GARBAGE, "fa3": GARBAGE},
)

PAGE_OUT_OF_RANGE = Mistake(
    "page_out_of_range",
    what={
        "en": "{argument} holds page {value}, the cache has {pages} pages.",
        "zh": "{argument} 里有第 {value} 页，而缓存只有 {pages} 页。",
    },
    fix={
        "en": "pages are numbered 0..{last}; a token position becomes a page number by // page_size.",
        "zh": "页号是 0..{last}；token 位置要 // page_size 才是页号。",
    },
    real={"dec": ILLEGAL},
)

PAGE_SIZE_DIFFERS = Mistake(
    "page_size_differs",
    what={
        "en": "plan was told page_size {planned}, the cache has pages of {value}.",
        "zh": "plan 时的 page_size 是 {planned}，缓存的一页却有 {value} 个位置。",
    },
    fix={
        "en": "plan with the page size of the cache, or view the cache with the page size of the plan.",
        "zh": "plan 用缓存的页大小，或者按 plan 的页大小 view 缓存。",
    },
    real={"dec": HARMLESS, "tc": HARMLESS, "fa2": HARMLESS, "fa3": GARBAGE},
)

SEQ_LENS_WRONG = Mistake(
    "seq_lens_wrong",
    what={
        "en": "{argument} says {value} for request {position}; its pages hold {should} tokens.",
        "zh": "请求 {position} 的 {argument} 是 {value}，而它的页里有 {should} 个 token。",
    },
    fix={
        "en": "(pages - 1) * page_size + last_page_len, or leave seq_lens out.",
        "zh": "应当是 (页数 - 1) * page_size + last_page_len；也可以不传 seq_lens。",
    },
    real={"dec": HARMLESS, "tc": HARMLESS, "fa2": HARMLESS, "fa3": GARBAGE},
)

SEQ_LENS_TYPE = Mistake(
    "seq_lens_not_integer",
    what={
        "en": "{argument} is {dtype}; lengths are whole numbers.",
        "zh": "{argument} 的类型是 {dtype}；长度应当是整数。",
    },
    fix={"en": "create it as int32.", "zh": "用 int32 创建。"},
    note={
        "en": "plan converts it to int32 on the CPU, which cuts off fractions; whole numbers in float32 came out right",
        "zh": "plan 会在 CPU 上把它转成 int32，小数部分会被截掉；float32 里的整数结果是对的",
    },
)

SEQ_LENS_COUNT = Mistake(
    "seq_lens_wrong_count",
    what={
        "en": "{argument} has {got} entries; there are {expected} requests.",
        "zh": "{argument} 有 {got} 项，而请求有 {expected} 个。",
    },
    fix={"en": "one entry for each request.", "zh": "每个请求一项。"},
    note={
        "en": "Measured with an entry too few: fa3 takes some other length for the last request, the others don't look at "
        "seq_lens",
        "zh": "测量的是少一项的情况：fa3 给最后一个请求用了别的长度，其余的不看 seq_lens",
    },
)
SEQ_LENS_SHORT: dict[Path, Outcome] = {"dec": HARMLESS, "tc": HARMLESS, "fa2": HARMLESS, "fa3": GARBAGE}

PAGE_SIZE_INVALID = Mistake(
    "page_size_invalid",
    what={"en": "page_size is {value}.", "zh": "page_size 是 {value}。"},
    fix={"en": "a page holds at least one token.", "zh": "一页至少有一个位置。"},
    note={
        "en": "The fa2 planner and that of CUDA-core decode divide by it; fa3 only computes lengths with it",
        "zh": "fa2 和 CUDA core decode 的 planner 会用它做除数；fa3 只用它算长度",
    },
)
PAGE_SIZE_ZERO: dict[Path, Outcome] = {
    "dec": DIVISION_BY_ZERO,
    "tc": DIVISION_BY_ZERO,
    "fa2": DIVISION_BY_ZERO,
    "fa3": GARBAGE,
}

HEADS_NOT_DIVISIBLE = Mistake(
    "heads_not_divisible",
    what={
        "en": "{value} query heads can't be shared by {kv} KV heads.",
        "zh": "{value} 个 query 头不能由 {kv} 个 KV 头平分。",
    },
    fix={
        "en": "num_qo_heads must be a multiple of num_kv_heads.",
        "zh": "num_qo_heads 必须是 num_kv_heads 的整数倍。",
    },
    real={
        "dec": GARBAGE,
        "tc": raises(RuntimeError, "num_qo_heads {value} should be divisible by num_kv_heads {kv}"),
        "fa2": raises(RuntimeError, "num_qo_heads {value} should be divisible by num_kv_heads {kv}"),
        "fa3": raises(RuntimeError, "num_qo_heads {value} should be divisible by num_kv_heads {kv}"),
    },
)

GROUP_SIZE_UNSUPPORTED = Mistake(
    "group_size_unsupported",
    what={
        "en": "{heads} query heads over {kv} KV heads is a group of {value}; the CUDA-core decode kernel "
        "exists for groups of 1, 2, 3, 4, 6, 8 and 16.",
        "zh": "{heads} 个 query 头对 {kv} 个 KV 头，组大小是 {value}；CUDA core 的 decode 只有组大小 "
        "1、2、3、4、6、8、16 的 kernel。",
    },
    fix={"en": "use use_tensor_cores=True.", "zh": "用 use_tensor_cores=True。"},
    real={"dec": raises(RuntimeError, "Unsupported group_size: {value}")},
)
