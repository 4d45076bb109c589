"""The ways to be wrong about the blocks of a sparse mask.

Written as in `mistakes_wrappers`. Measured were float16 without a mask, which is fa3 by "auto", and with one, which is fa2.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, Outcome, Path, raises


def _every(outcome: Outcome) -> dict[Path, Outcome]:
    """For what the library's Python does, whatever the kernel."""
    return dict.fromkeys(("dec", "fa2", "fa3"), outcome)


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
    note={
        "en": "The count is not compared with M: the blocks of one entry too many had no rows and changed nothing; too few were "
        "not measured",
        "zh": "不会用 M 核对项数：多出一项时，它的块没有对应的行，什么也没有改变；项数不够的情况没有测量过",
    },
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
    real={"fa3": GARBAGE},
    note={
        "en": "plan raises 'indices out of bound' from one block further on; block {blocks} and negative ones pass, and what "
        "lies behind k and v, or in front of them, is read",
        "zh": "plan 要再多一块才会抛 indices out of bound；第 {blocks} 块和负数都能通过，读到的是 k、v 后面或前面的内存",
    },
)

BLOCK_TWICE = Mistake(
    "block_listed_twice",
    what={
        "en": "indices lists block {value} twice in block row {row}.",
        "zh": "indices 在块行 {row} 里把第 {value} 块列了两次。",
    },
    fix={"en": "list every block of a block row once.", "zh": "一个块行里的每个块只列一次。"},
    real={"fa3": GARBAGE},
    note={
        "en": "Blocks are read like pages, one after the other: its columns get twice their weight",
        "zh": "块像页一样依次读取：这个块里的列会算两遍权重",
    },
)

BLOCK_COLUMNS = Mistake(
    "block_columns",
    what={
        "en": "{N} columns can't be cut into blocks of {C}.",
        "zh": "{N} 列不能按每块 {C} 列切分。",
    },
    fix={"en": "N must be a multiple of C.", "zh": "N 必须是 C 的整数倍。"},
    real=_every(
        raises(RuntimeError, "shape '[-1, {C}, {heads}, {dim}]' is invalid for input of size {size}", "run")
    ),
    note={"en": "run fails when it reshapes k", "zh": "run 在给 k 做 reshape 时失败"},
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
        "en": "The output comes back in o_data_type, without a word: measured with bfloat16 for a float16 q, which is right "
        "and is no mistake; float16, the default, is refused for another q",
        "zh": "输出会悄悄变成 o_data_type：float16 的 q 配 bfloat16 测量过，结果是对的，不算错误；默认的 float16 "
        "配其他类型的 q 则会被拒绝",
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
    note={
        "en": "Its entries are taken one after the other (measured with blocks that are too narrow)",
        "zh": "掩码的各项会按内存顺序依次取用（测量的是每块太窄的情况）",
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

Q_SHAPE = Mistake(
    "block_q_shape",
    what={
        "en": "{argument} has shape {shape}, plan was told {expected}.",
        "zh": "{argument} 的形状是 {shape}，plan 时是 {expected}。",
    },
    fix={
        "en": "q is [M, num_qo_heads, head_dim], k and v [N, num_kv_heads, head_dim]; with variable blocks heads come "
        "first: [num_qo_heads, rows, head_dim] and [num_kv_heads, columns, head_dim].",
        "zh": "q 是 [M, num_qo_heads, head_dim]，k、v 是 [N, num_kv_heads, head_dim]；大小可变的块把头放在最前："
        "[num_qo_heads, 行数, head_dim] 和 [num_kv_heads, 列数, head_dim]。",
    },
    note={"en": "Sizes are not compared with the plan", "zh": "尺寸不会与 plan 比较"},
)
