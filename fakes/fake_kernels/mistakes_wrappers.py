"""The ways to be wrong about KV without pages and about the levels of a cascade.

Outcomes were measured on an H200 with flashinfer 0.7.2.post1, or are errors of its own Python. What has neither nobody
measured: notes say what the source does, and faithful mode refuses to guess.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import DIVISION_BY_ZERO, GARBAGE, raises

_SUM = {
    "en": "0 first, then the running sum of each request's KV length in tokens; pages have no place here.",
    "zh": "先是 0，然后是各请求 KV 长度的累加和，以 token 计；这里没有页。",
}

NOT_A_TENSOR = Mistake(
    "no_tensor",
    what={"en": "{argument} is a {type}; it must be a tensor.", "zh": "{argument} 是 {type}，应当是张量。"},
    fix={"en": "pass a tensor of the documented type.", "zh": "传入文档所写类型的张量。"},
)

RAGGED_COUNT = Mistake(
    "ragged_kv_indptr_count",
    what={
        "en": "{argument} has {got} entries, qo_indptr {expected}.",
        "zh": "{argument} 有 {got} 项，qo_indptr 有 {expected} 项。",
    },
    fix=_SUM,
    real=dict.fromkeys(
        ("fa2", "fa3"), raises(ValueError, "The kv_indptr length should be equal to mask_indptr length.")
    ),
)

RAGGED_START = Mistake(
    "ragged_kv_indptr_start",
    what={
        "en": "{argument} must start at 0; it starts with {value}.",
        "zh": "{argument} 必须从 0 开始；现在第一项是 {value}。",
    },
    fix=_SUM,
    real=dict.fromkeys(("fa2", "fa3"), GARBAGE),
    note={
        "en": "The planners never look at the first entry: the first request begins there",
        "zh": "各个 planner 都不看第一项：第一个请求就从那里开始",
    },
)

RAGGED_DECREASING = Mistake(
    "ragged_kv_indptr_decreasing",
    what={
        "en": "{argument} decreases: entry {next} is {after}, after {before}.",
        "zh": "{argument} 变小了：第 {next} 项是 {after}，前一项是 {before}。",
    },
    fix=_SUM,
    real={
        "fa2": raises(
            RuntimeError, "kv_indptr[{next}]{after} - kv_indptr[{previous}]{before} should be non-negative"
        ),
        "fa3": raises(RuntimeError, "kv_len[{previous}]{length} should be non-negative"),
    },
)

RAGGED_KV_ROWS = Mistake(
    "ragged_kv_rows",
    what={
        "en": "{argument} has {got} rows, kv_indptr ends at {expected}.",
        "zh": "{argument} 有 {got} 行，kv_indptr 的最后一项是 {expected}。",
    },
    fix={
        "en": "kv_indptr counts tokens and ends at the rows of k and v; a running sum of pages is for the paged "
        "wrapper.",
        "zh": "kv_indptr 数的是 token，最后一项等于 k、v 的行数；页数的累加和是给 paged wrapper 的。",
    },
    note={
        "en": "Rows of k and v are not compared with kv_indptr. With too few fa2 reads past their end: right where the missing "
        "rows lay there, as behind the slice that was measured. fa3 takes zeros for them, and dies of an integer division by "
        "zero where k has more heads than q (HND given for NHD). More rows than kv_indptr has were not measured",
        "zh": "不会用 kv_indptr 核对 k、v 的行数。行数少时 fa2 会读到末尾之外：测量的是切片，缺的行正好就在后面，结果碰巧是对的；"
        "fa3 把缺的行当作 0，如果 k 的头比 q 多（把 HND 当 NHD 传），进程死于整数除以零。行数多于 kv_indptr 的情况没有测量过",
    },
)

HND_ON_FA3 = Mistake(
    "hnd_on_fa3",
    what={
        "en": "kv_layout is HND, and the backend is fa3, which takes tokens for heads in it.",
        "zh": "kv_layout 是 HND，而后端是 fa3，它会把 token 数当成头数。",
    },
    fix={
        "en": "use NHD (k.transpose(0, 1)) or backend='fa2'; 'auto' is fa3 for half types.",
        "zh": '用 NHD（k.transpose(0, 1)），或者 backend="fa2"；半精度类型的 "auto" 就是 fa3。',
    },
    real={"fa3": DIVISION_BY_ZERO},
    note={
        "en": "Measured on a ragged batch with more tokens than query heads. The source takes sizes of NHD whatever the "
        "layout: query heads divided by tokens is the size of a group, 0 or, with few tokens, a wrong one",
        "zh": "测量的是 ragged 的 batch，token 数多于 query 头数。源码不论布局都按 NHD 取尺寸：query 头数除以 token 数当成组的"
        "大小，得到 0；token 少时则是错的值",
    },
)

CAUSAL_SHORT_KV = Mistake(
    "causal_short_kv",
    what={
        "en": "causal attention of {rows} rows over {kv} keys: the first rows would see nothing.",
        "zh": "{rows} 行 query 对 {kv} 个 key 做因果注意力：前面的行什么也看不到。",
    },
    fix={
        "en": "k and v must hold the whole sequence, the new tokens included; batched wrappers take it and give 0.",
        "zh": "k 和 v 应包含整条序列，新 token 也在内；批处理的 wrapper 接受这种情况并给出 0。",
    },
    real={
        "fa2": raises(
            RuntimeError,
            "When mask_mode is set to MaskMode::kCausal, kv_len must be greater than or equal to qo_len, "
            "got kv_len{kv} and qo_len {rows}",
            "run",
        )
    },
)

LAYOUT_SHAPE = Mistake(
    "kv_shape",
    what={
        "en": "{argument} has shape {shape}; needed is {expected}.",
        "zh": "{argument} 的形状是 {shape}，需要的是 {expected}。",
    },
    fix={
        "en": "check the layout: NHD is [tokens, heads, head_dim], HND is [heads, tokens, head_dim].",
        "zh": "检查布局：NHD 是 [token 数, 头, 维]，HND 是 [头, token 数, 维]。",
    },
    note={"en": "Sizes are taken from the tensors as they are", "zh": "尺寸直接取自张量"},
)

KV_DTYPE = Mistake(
    "kv_dtype",
    what={
        "en": "{argument} is {value}, q is {planned}.",
        "zh": "{argument} 是 {value}，q 是 {planned}。",
    },
    fix={"en": "q, k and v have one type.", "zh": "q、k、v 类型相同。"},
    note={
        "en": "A kernel for the types of q and k is compiled, and v is read as k's type",
        "zh": "会按 q 和 k 的类型编译 kernel，v 按 k 的类型去读",
    },
)

LEVELS_COUNT = Mistake(
    "cascade_levels_count",
    what={
        "en": "{argument} has {got} entries; the wrapper has {expected} levels.",
        "zh": "{argument} 有 {got} 项，而 wrapper 有 {expected} 层。",
    },
    fix={"en": "one array for each level.", "zh": "每层一个数组。"},
    real=dict.fromkeys(("fa2", "fa3"), raises(ValueError, "{message}")),
)

LEVEL_ROWS = Mistake(
    "cascade_level_rows",
    what={
        "en": "level {level} plans {value} rows of q, the last level {expected}.",
        "zh": "第 {level} 层 plan 了 {value} 行 q，而最后一层是 {expected} 行。",
    },
    fix={
        "en": "every level covers all rows: its qo_indptr ends at the rows of q, with fewer and longer segments "
        "where requests share their KV.",
        "zh": "每层都要覆盖全部行：qo_indptr 的最后一项都等于 q 的行数；共享 KV 的层段数少、每段更长。",
    },
    note={
        "en": "plan accepts it; run raises ValueError for the level whose rows differ from q's",
        "zh": "plan 会接受；run 会对行数与 q 不同的那一层抛 ValueError",
    },
)

LEVEL_PAGE_TWICE = Mistake(
    "cascade_page_twice",
    what={
        "en": "page {value} is listed at levels {level} and {other}, and row {row} of q sees both.",
        "zh": "第 {value} 页在第 {level} 层和第 {other} 层都有，而 q 的第 {row} 行两层都看得到。",
    },
    fix={
        "en": "a level lists only its own pages: those of a shared prefix are left out of the levels below it.",
        "zh": "每层只列自己的页：共享前缀的页不要再列到下面的层里。",
    },
    real=dict.fromkeys(("fa2", "fa3"), GARBAGE),
    note={
        "en": "The levels' states are merged as if their KV were different: these tokens get twice their weight",
        "zh": "合并各层的状态时认为它们的 KV 互不相同：这些 token 会算两遍权重",
    },
)

LEVELS_ORDER = Mistake(
    "cascade_levels_order",
    what={
        "en": "a segment of level {level} begins at row {row}, in the middle of one of the last level, {last}: causal would "
        "hold across requests.",
        "zh": "第 {level} 层有一段从第 {row} 行开始，落在最后一层（第 {last} 层）的一段中间：因果掩码会跨请求起作用。",
    },
    fix={
        "en": "the widest shared level comes first, each request's own KV last.",
        "zh": "共享最广的层在最前，每个请求自己的 KV 在最后。",
    },
    note={
        "en": "Only the last level is causal; rows see all of what lies at the others",
        "zh": "只有最后一层是因果的；其余各层的内容每一行都全部看得到",
    },
)
