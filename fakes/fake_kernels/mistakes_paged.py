"""The ways to get paged metadata wrong, and what flashinfer 0.7.2.post1 did with each on an H200.

Outcomes are measurements (batch of 3, page size 16). Where only the library's source is known the
entry has a `note` and no outcome, so faithful mode refuses to guess.
Sentences are format strings; `argument` is the name that the caller used.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import BUILD_FAILS, GARBAGE, HARMLESS, ILLEGAL, NAN, raises

_NEGATIVE_KV = raises(
    RuntimeError,
    "kv_indptr[{next}]{after} - kv_indptr[{position}]{before} should be non-negative",
)
_NEGATIVE_QO = raises(
    RuntimeError,
    "qo_indptr[{next}]{after} - qo_indptr[{position}]{before} should be non-negative",
)
SIZES_DIFFER = raises(RuntimeError, "{broadcast}")
_SIZES_EVERYWHERE = dict.fromkeys(("dec", "tc", "fa2", "fa3"), SIZES_DIFFER)
_NO_COUNT_CHECK = {
    "en": "The counts are not compared there: only plan's own arithmetic of lengths can fail. seq_lens skips "
    "even that, and the planner reads past the end of the array",
    "zh": "那里不会核对各数组的项数，只有 plan 自己的长度运算可能失败；传了 seq_lens 连这个运算也不做，"
    "planner 会读到数组末尾之外",
}

KV_INDPTR_NO_LEADING_ZERO = Mistake(
    "kv_indptr_no_leading_zero",
    what={
        "en": "{argument} lacks its leading 0: it has {got} entries for {batch} requests and "
        "starts with {value}.",
        "zh": "{argument} 少了开头的 0：{batch} 个请求却只有 {got} 项，第一项是 {value}。",
    },
    fix={
        "en": "give {expected} entries: 0 first, then the running sum of pages of each request.",
        "zh": "应当有 {expected} 项：先是 0，然后是各请求页数的累加和。",
    },
    real=_SIZES_EVERYWHERE,
    note=_NO_COUNT_CHECK,
)

KV_INDPTR_NOT_FROM_ZERO = Mistake(
    "kv_indptr_not_from_zero",
    what={
        "en": "{argument} must start at 0; it starts with {value}, so the first {value} pages "
        "belong to nobody.",
        "zh": "{argument} 必须从 0 开始；现在第一项是 {value}，前 {value} 页不属于任何请求。",
    },
    fix={
        "en": "start with 0: {argument}[i] is where the pages of request i begin in the indices.",
        "zh": "第一项写 0：{argument}[i] 是请求 i 的页在 indices 中的起点。",
    },
    real={"dec": GARBAGE, "tc": GARBAGE, "fa2": GARBAGE, "fa3": GARBAGE},
    note={
        "en": "The planners never look at the first entry",
        "zh": "各个 planner 都不看第一项",
    },
)

KV_INDPTR_IS_LENGTHS = Mistake(
    "kv_indptr_is_lengths",
    what={
        "en": "{argument} holds the lengths of the requests, not their running sum: {entries}.",
        "zh": "{argument} 里是各请求的长度，而不是累加和：{entries}。",
    },
    fix={
        "en": "sum it up: with pages per request {lengths} it is {sums}.",
        "zh": "要累加：各请求的页数是 {lengths} 时，应当是 {sums}。",
    },
    real={"dec": GARBAGE, "tc": _NEGATIVE_KV, "fa2": _NEGATIVE_KV, "fa3": GARBAGE},
)

KV_INDPTR_DECREASING = Mistake(
    "kv_indptr_decreasing",
    what={
        "en": "{argument} decreases: entry {next} is {after}, after {before}.",
        "zh": "{argument} 变小了：第 {next} 项是 {after}，前一项是 {before}。",
    },
    fix={
        "en": "it is a running sum of page counts and never decreases.",
        "zh": "它是页数的累加和，不会变小。",
    },
    real={"dec": GARBAGE, "tc": _NEGATIVE_KV, "fa2": _NEGATIVE_KV, "fa3": GARBAGE},
)

KV_INDPTR_COUNT = Mistake(
    "kv_indptr_wrong_count",
    what={
        "en": "{argument} has {got} entries; a batch of {batch} requests needs {expected}.",
        "zh": "{argument} 有 {got} 项；{batch} 个请求需要 {expected} 项。",
    },
    fix={
        "en": "one entry more than there are requests, the first of them 0.",
        "zh": "项数比请求数多 1，第一项是 0。",
    },
    note=_NO_COUNT_CHECK,
)

LAST_PAGE_LEN_COUNT = Mistake(
    "last_page_len_wrong_count",
    what={
        "en": "{argument} has {got} entries; there are {expected} requests.",
        "zh": "{argument} 有 {got} 项，而请求有 {expected} 个。",
    },
    fix={"en": "one entry for each request.", "zh": "每个请求一项。"},
    real=_SIZES_EVERYWHERE,
    note=_NO_COUNT_CHECK,
)

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
    note={
        "en": "dec, tc and fa2 take 0 from the equal neighbours in indptr and don't mind",
        "zh": "dec、tc、fa2 看到 indptr 相邻两项相等就取 0，不受影响",
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

QO_INDPTR_NOT_INT32 = Mistake(
    "qo_indptr_not_int32",
    what={
        "en": "{argument} is {dtype}; the planner reads int32.",
        "zh": "{argument} 的类型是 {dtype}；planner 按 int32 读。",
    },
    fix={
        "en": "create it as int32; torch.cumsum turns int32 into int64 unless it is in place or "
        "has dtype=torch.int32.",
        "zh": "用 int32 创建；torch.cumsum 会把 int32 变成 int64，除非原地做或者写 dtype=torch.int32。",
    },
    real={"fa2": _NEGATIVE_QO, "fa3": _NEGATIVE_QO},
)

KV_INDPTR_NOT_INT32 = Mistake(
    "kv_indptr_not_int32",
    what={
        "en": "{argument} is {dtype}; it must be int32.",
        "zh": "{argument} 的类型是 {dtype}，必须是 int32。",
    },
    fix={
        "en": "create it as int32; torch.cumsum turns int32 into int64 unless it is in place or "
        "has dtype=torch.int32.",
        "zh": "用 int32 创建；torch.cumsum 会把 int32 变成 int64，除非原地做或者写 dtype=torch.int32。",
    },
    real={"dec": BUILD_FAILS},
    note={
        "en": "Its type chooses the index type of the module that is compiled",
        "zh": "它的类型决定了 JIT 编译出的模块用什么下标类型",
    },
)

NOT_CONTIGUOUS = Mistake(
    "not_contiguous",
    what={
        "en": "{argument} is not contiguous (stride {stride}); kernels read its memory in order "
        "from the first entry.",
        "zh": "{argument} 不连续（步长 {stride}）；kernel 从第一项开始按内存顺序读。",
    },
    fix={"en": "call .contiguous().", "zh": "调用 .contiguous()。"},
)

INDICES_NOT_CONTIGUOUS = Mistake(
    NOT_CONTIGUOUS.code, what=NOT_CONTIGUOUS.what, fix=NOT_CONTIGUOUS.fix, real={"fa2": GARBAGE}
)

NOT_A_VECTOR = Mistake(
    "not_one_dimensional",
    what={
        "en": "{argument} has shape {shape}; it must have one dimension.",
        "zh": "{argument} 的形状是 {shape}，应当是一维。",
    },
    fix={"en": "flatten it.", "zh": "把它展平。"},
)

NOT_A_TENSOR = Mistake(
    "not_a_tensor",
    what={
        "en": "{argument} is a {type}; it must be an int32 tensor.",
        "zh": "{argument} 是 {type}，应当是 int32 张量。",
    },
    fix={"en": "torch.tensor(..., dtype=torch.int32).", "zh": "torch.tensor(..., dtype=torch.int32)。"},
)

EMPTY_BATCH = Mistake(
    "empty_batch",
    what={"en": "the batch has no requests.", "zh": "这个 batch 里没有请求。"},
    fix={"en": "don't plan an empty batch.", "zh": "不要为空的 batch 调用 plan。"},
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
    note={
        "en": "indices are never compared with indptr: the kernel reads past the end",
        "zh": "不会用 indptr 核对 indices：kernel 会读到数组末尾之外",
    },
)

KV_INDPTR_IN_TOKENS = Mistake(
    "kv_indptr_in_tokens",
    what={
        "en": "{argument} counts tokens (it ends at {expected}); it must count pages of "
        "{page_size}, of which "
        "{got} are listed.",
        "zh": "{argument} 数的是 token（最后一项 {expected}）；应当数页，每页 {page_size} 个位置，"
        "列出的页有 {got} 个。",
    },
    fix={
        "en": "add up ceil(length / page_size) of each request.",
        "zh": "累加每个请求的 ceil(长度 / page_size)。",
    },
    note={
        "en": "indices are never compared with indptr: the kernel reads past the end",
        "zh": "不会用 indptr 核对 indices：kernel 会读到数组末尾之外",
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

SEQ_LENS_COUNT = Mistake(
    "seq_lens_wrong_count",
    what={
        "en": "{argument} has {got} entries; there are {expected} requests.",
        "zh": "{argument} 有 {got} 项，而请求有 {expected} 个。",
    },
    fix={"en": "one entry for each request.", "zh": "每个请求一项。"},
)

QO_INDPTR_NO_LEADING_ZERO = Mistake(
    "qo_indptr_no_leading_zero",
    what={
        "en": "{argument} must start at 0; it starts with {value} and has {got} entries (a batch "
        "of {batch} needs {expected}).",
        "zh": "{argument} 必须从 0 开始；现在第一项是 {value}，共 {got} 项（{batch} 个请求需要 "
        "{expected} 项）。",
    },
    fix={
        "en": "give {expected} entries: 0 first, then the running sum of new tokens of each request.",
        "zh": "应当有 {expected} 项：先是 0，然后是各请求本轮新 token 数的累加和。",
    },
    note={
        "en": "The batch size is taken from it (entries - 1) and its first entry is not looked at",
        "zh": "batch 大小就取自它（项数 - 1），第一项没有人看",
    },
)

QO_INDPTR_DECREASING = Mistake(
    "qo_indptr_decreasing",
    what={
        "en": "{argument} decreases: entry {next} is {after}, after {before}.",
        "zh": "{argument} 变小了：第 {next} 项是 {after}，前一项是 {before}。",
    },
    fix={
        "en": "it is a running sum of token counts: 0 first, never decreasing.",
        "zh": "它是 token 数的累加和：从 0 开始，不会变小。",
    },
    real={"fa2": _NEGATIVE_QO, "fa3": _NEGATIVE_QO},
)

QO_INDPTR_COUNT = Mistake(
    "qo_indptr_wrong_count",
    what={
        "en": "{argument} has {got} entries; the other arrays describe {batch} requests, which "
        "needs {expected}.",
        "zh": "{argument} 有 {got} 项；其他数组描述的是 {batch} 个请求，需要 {expected} 项。",
    },
    fix={
        "en": "one entry more than there are requests, the first of them 0.",
        "zh": "项数比请求数多 1，第一项是 0。",
    },
    note=_NO_COUNT_CHECK,
)

PAGE_SIZE_INVALID = Mistake(
    "page_size_invalid",
    what={"en": "page_size is {value}.", "zh": "page_size 是 {value}。"},
    fix={"en": "a page holds at least one token.", "zh": "一页至少有一个位置。"},
)

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
