"""The arrays that divide a paged batch into requests: what can be wrong with their form, their number of
entries and their running sums, and what flashinfer 0.7.2.post1 did with each mistake on an H200.

Outcomes are measurements (batch of 3, page size 16); where the case decides they come with the finding
(`checks_paged`). What was not measured has no outcome, so faithful mode refuses to guess.
Sentences are format strings; `argument` is the name that the caller used.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import BUILD_FAILS, GARBAGE, HANGS, HARMLESS, Outcome, Path, raises

_NEGATIVE_KV = raises(
    RuntimeError,
    "kv_indptr[{next}]{after} - kv_indptr[{at}]{before} should be non-negative",
)
_NEGATIVE_QO = raises(
    RuntimeError,
    "qo_indptr[{next}]{after} - qo_indptr[{at}]{before} should be non-negative",
)
INDPTR_TYPE_CHECKED = raises(
    RuntimeError, "Error in standard plan: indptr.dtype() == dl_int32 ({dtype} vs. int32)"
)
"""CUDA-core decode after a fast plan, read in its source: the module of the last plan takes int32."""
SIZES_DIFFER = raises(RuntimeError, "{broadcast}")
_SIZES_EVERYWHERE = dict.fromkeys(("dec", "tc", "fa2", "fa3"), SIZES_DIFFER)
_NO_COUNT_CHECK = {
    "en": "The counts are not compared there: only plan's own arithmetic of lengths can fail. seq_lens skips "
    "even that, and the planner reads past the end of the array",
    "zh": "那里不会核对各数组的项数，只有 plan 自己的长度运算可能失败；传了 seq_lens 连这个运算也不做，"
    "planner 会读到数组末尾之外",
}
ROWS_DIFFER = raises(
    ValueError,
    "does not match qo_indptr[-1] ({value}). For paged prefill, q must have shape [total_tokens, num_heads, "
    "head_dim] where total_tokens = qo_indptr[-1].",
    "run",
)
"""A qo_indptr that leaves out the last requests: plan takes it, run compares the rows of q with it."""
ROWS_SHIFTED: dict[Path, Outcome] = {"fa2": GARBAGE, "fa3": GARBAGE}
"""A qo_indptr of the paged wrappers that doesn't start at 0; the mistake is also one of those without pages."""
STRIDED_INDPTR: dict[Path, Outcome] = {"tc": GARBAGE, "fa2": GARBAGE, "fa3": HARMLESS}
"""indptr of a plan that lies apart: the host reads it by its stride, the kernels in order. Only fa3 takes all lengths from
the host."""
STRIDED_INDPTR_FALLS = HANGS
"""CUDA-core decode where the entries read in order go down: a negative length is a huge one."""
EMPTY_MAX: Outcome = raises(
    RuntimeError,
    "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
    "argument.",
)
EMPTY_BATCH_OUTCOMES: dict[Path, Outcome] = {
    "dec": raises(ZeroDivisionError, "integer division or modulo by zero", "run"),
    "tc": EMPTY_MAX,
    "fa2": EMPTY_MAX,
    "fa3": EMPTY_MAX,
}
"""Of the paged wrappers; the mistake is also one of those without pages."""

NOT_A_TENSOR = Mistake(
    "not_a_tensor",
    what={
        "en": "{argument} is a {type}; it must be an int32 tensor.",
        "zh": "{argument} 是 {type}，应当是 int32 张量。",
    },
    fix={"en": "torch.tensor(..., dtype=torch.int32).", "zh": "torch.tensor(..., dtype=torch.int32)。"},
)

NOT_A_VECTOR = Mistake(
    "not_one_dimensional",
    what={
        "en": "{argument} has shape {shape}; it must have one dimension.",
        "zh": "{argument} 的形状是 {shape}，应当是一维。",
    },
    fix={"en": "flatten it.", "zh": "把它展平。"},
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

EMPTY_BATCH = Mistake(
    "empty_batch",
    what={"en": "the batch has no requests.", "zh": "这个 batch 里没有请求。"},
    fix={"en": "don't plan an empty batch.", "zh": "不要为空的 batch 调用 plan。"},
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
        "en": "The batch size is taken from it (entries - 1), rows before the first entry belong to nobody",
        "zh": "batch 大小就取自它（项数 - 1），第一项之前的行不属于任何请求",
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
    note={
        "en": "The batch size is taken from it (entries - 1). With an entry too few the last request isn't planned, and "
        "run raises because q has its rows; one more was harmless because it repeated the last entry, a request without "
        "rows",
        "zh": "batch 大小就取自它（项数 - 1）。少一项时最后一个请求没有进入计划，而 q 里有它的行，所以 run 会报错；多一项"
        "而没有出错，是因为多的那项与最后一项相同，也就是一个没有行的请求",
    },
)

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
    real=_SIZES_EVERYWHERE,
    note=_NO_COUNT_CHECK,
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
    real={"dec": GARBAGE, "tc": GARBAGE, "fa2": GARBAGE, "fa3": GARBAGE},
    note={
        "en": "indices are never compared with indptr: the kernel reads past the end",
        "zh": "不会用 indptr 核对 indices：kernel 会读到数组末尾之外",
    },
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
