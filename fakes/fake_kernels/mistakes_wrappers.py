"""The ways to be wrong about KV without pages, levels of a cascade and blocks of a sparse mask.

Nobody measured these on a GPU. Errors of flashinfer 0.7.2.post1's own Python are outcomes; notes say what
its source does otherwise, and faithful mode refuses to guess.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import raises

_SUM = {
    "en": "0 first, then the running sum of each request's KV length in tokens; pages have no place here.",
    "zh": "先是 0，然后是各请求 KV 长度的累加和，以 token 计；这里没有页。",
}

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
    note={"en": "The planners never look at the first entry", "zh": "各个 planner 都不看第一项"},
)

RAGGED_DECREASING = Mistake(
    "ragged_kv_indptr_decreasing",
    what={
        "en": "{argument} decreases: entry {next} is {after}, after {before}.",
        "zh": "{argument} 变小了：第 {next} 项是 {after}，前一项是 {before}。",
    },
    fix=_SUM,
    note={
        "en": "The fa2 planner raises for it, the fa3 planner doesn't look",
        "zh": "fa2 的 planner 会报错，fa3 的 planner 不检查",
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
        "en": "Rows of k and v are not compared with kv_indptr: too few are read past their end, with too many the "
        "rest is never seen",
        "zh": "不会用 kv_indptr 核对 k、v 的行数：少了会读到末尾之外，多了则后面的行永远看不到",
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

LEVEL_CUTS = Mistake(
    "cascade_level_cuts_request",
    what={
        "en": "level {level} has a border at row {value}, inside a request of the last level.",
        "zh": "第 {level} 层在第 {value} 行有边界，落在最后一层的某个请求中间。",
    },
    fix={
        "en": "a segment of an upper level is made of whole requests: its borders are borders of the last level.",
        "zh": "上层的一段由完整的请求组成：它的边界也是最后一层的边界。",
    },
    note={
        "en": "It is computed as it stands: rows of one request get different shared KV",
        "zh": "会照样计算：同一个请求的各行得到不同的共享 KV",
    },
)

BLOCK_ROWS = Mistake(
    "block_rows_count",
    what={
        "en": "indptr has {got} entries; {M} rows in blocks of {R} are {blocks} block rows, which needs {expected}.",
        "zh": "indptr 有 {got} 项；{M} 行按每块 {R} 行分成 {blocks} 个块行，需要 {expected} 项。",
    },
    fix={
        "en": "0 first, then the running sum of blocks in each block row.",
        "zh": "先是 0，然后是各块行的块数的累加和。",
    },
    note={"en": "The count is not compared with M", "zh": "不会用 M 核对项数"},
)

BLOCK_INDPTR = Mistake(
    "block_indptr",
    what={
        "en": "indptr is {entries}: {problem}.",
        "zh": "indptr 是 {entries}：{problem_zh}。",
    },
    fix={
        "en": "0 first, then the running sum of blocks in each block row; it ends at len(indices).",
        "zh": "先是 0，然后是各块行的块数的累加和，最后一项是 len(indices)。",
    },
)

BLOCK_OUT_OF_RANGE = Mistake(
    "block_out_of_range",
    what={
        "en": "indices holds block {value}, and {N} columns in blocks of {C} are {blocks}.",
        "zh": "indices 里有第 {value} 块，而 {N} 列按每块 {C} 列只有 {blocks} 块。",
    },
    fix={"en": "column blocks are numbered 0..{last}.", "zh": "列块的编号是 0..{last}。"},
    note={
        "en": "plan raises 'indices out of bound' from one block further on; block {blocks} and negative ones pass",
        "zh": "plan 要再多一块才会抛 indices out of bound；第 {blocks} 块和负数都能通过",
    },
)

BLOCK_COLUMNS = Mistake(
    "block_columns",
    what={
        "en": "{N} columns can't be cut into blocks of {C}.",
        "zh": "{N} 列不能按每块 {C} 列切分。",
    },
    fix={"en": "N must be a multiple of C.", "zh": "N 必须是 C 的整数倍。"},
    note={"en": "run fails when it reshapes k", "zh": "run 在变形 k 时失败"},
)

BLOCK_SMALL = Mistake(
    "block_rows_too_small",
    what={
        "en": "blocks of {R} rows with {group} query heads a KV head: the library takes its decode kernel, which has "
        "one row of q a block row.",
        "zh": "每块 {R} 行、每个 KV 头 {group} 个 query 头：库会选用 decode kernel，它的每个块行只有一行 q。",
    },
    fix={
        "en": "use R = 1, or R * (num_qo_heads // num_kv_heads) >= 4.",
        "zh": "用 R = 1，或者 R * (num_qo_heads // num_kv_heads) >= 4。",
    },
    note={
        "en": "The kernel would take rows of q for block rows and read indptr past its end",
        "zh": "kernel 会把 q 的行当成块行，读到 indptr 末尾之外",
    },
)

BLOCK_O_DTYPE = Mistake(
    "block_o_data_type",
    what={
        "en": "o_data_type is {value}, q_data_type {planned}.",
        "zh": "o_data_type 是 {value}，q_data_type 是 {planned}。",
    },
    fix={
        "en": "pass o_data_type=q.dtype; its default is float16 whatever q is.",
        "zh": "传 o_data_type=q.dtype；不论 q 是什么，它的默认值都是 float16。",
    },
    note={
        "en": "The output comes back in o_data_type, without a word",
        "zh": "输出会悄悄变成 o_data_type",
    },
)

BLOCK_MASK_SHAPE = Mistake(
    "block_mask_shape",
    what={
        "en": "{argument} has shape {shape}; needed is {expected}.",
        "zh": "{argument} 的形状是 {shape}，需要的是 {expected}。",
    },
    fix={
        "en": "one [R, C] mask for each block in the order of indices.",
        "zh": "按 indices 的顺序，每个块一个 [R, C] 掩码。",
    },
)

VARIABLE_SHAPE = Mistake(
    "variable_block_shapes",
    what={
        "en": "{argument} has shape {shape}; needed is {expected}.",
        "zh": "{argument} 的形状是 {shape}，需要的是 {expected}。",
    },
    fix={
        "en": "block_mask_map [num_kv_heads, block rows, block columns], block_row_sz [num_kv_heads, block rows], "
        "block_col_sz [num_kv_heads, block columns].",
        "zh": "block_mask_map 是 [KV 头, 块行数, 块列数]，block_row_sz 是 [KV 头, 块行数]，block_col_sz 是 "
        "[KV 头, 块列数]。",
    },
    note={"en": "plan ends in an assertion", "zh": "plan 以断言失败告终"},
    real=dict.fromkeys(("fa2", "fa3"), raises(AssertionError, "")),
)

VARIABLE_SIZES = Mistake(
    "variable_block_sizes",
    what={
        "en": "{argument} of KV head {head} adds up to {value}; {expected}.",
        "zh": "{argument} 在 KV 头 {head} 上加起来是 {value}；{expected_zh}。",
    },
    fix={
        "en": "block sizes are at least 0 and add up to the rows of q (block_row_sz) and of k (block_col_sz) on every "
        "head.",
        "zh": "块的大小不小于 0；每个头上加起来分别等于 q 的行数（block_row_sz）和 k 的行数（block_col_sz）。",
    },
    note={
        "en": "Heads lie one behind the other: with other sums the kernel works on rows of the next head",
        "zh": "各个头首尾相接：和不对时 kernel 会用到下一个头的行",
    },
)
