"""Mistakes in routing tokens to experts and sorting them for grouped products.

Outcomes were measured on an H200 with sglang-kernel 0.4.6; messages are those of sglang's sources
(moe_topk_softmax_kernels.cu), found again in the compiled library. What nobody measured has no outcome.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, raises

REFUSED = Mistake(
    "routing_shapes",
    what={"en": "{argument} has shape {shape}: {message}.", "zh": "{argument} 的形状是 {shape}：{message}。"},
    fix={
        "en": "gating_output [tokens, experts]; topk_weights and topk_ids [tokens, top_k].",
        "zh": "gating_output 是 [token 数, 专家数]；topk_weights 和 topk_ids 是 [token 数, top_k]。",
    },
    real={"rows": raises(RuntimeError, "{message}", "run")},
)

OUTPUT_TYPE = Mistake(
    "routing_type",
    what={
        "en": "{argument} is {got}; it must be {expected}.",
        "zh": "{argument} 的类型是 {got}，应当是 {expected}。",
    },
    fix={
        "en": "topk_weights in float32, topk_ids in int32.",
        "zh": "topk_weights 用 float32，topk_ids 用 int32。",
    },
    real={
        "rows": raises(RuntimeError, "expected scalar type {expected_scalar} but found {got_scalar}", "run")
    },
)

GATING_TYPE = Mistake(
    OUTPUT_TYPE.code,
    what=OUTPUT_TYPE.what,
    fix=OUTPUT_TYPE.fix,
    real={"rows": raises(RuntimeError, "gating_output must be float32, float16, or bfloat16", "run")},
)

NAN = Mistake(
    "row_has_nan",
    what={"en": "row {position} of {argument} holds NaN.", "zh": "{argument} 的第 {position} 行有 NaN。"},
    fix={"en": "find where it comes from.", "zh": "找出 NaN 的来源。"},
    real={"rows": GARBAGE},
    note={
        "en": "Comparisons with NaN choose the same expert again and again: with one NaN of 8 logits expert 0 came each time, "
        "with weights NaN, -10000, -10000",
        "zh": "与 NaN 的比较会反复选中同一个专家：8 个 logit 里有一个 NaN 时，每次都是专家 0，权重是 NaN、-10000、-10000",
    },
)

EXPERT_OUT_OF_RANGE = Mistake(
    "expert_out_of_range",
    what={
        "en": "{argument}[{position}] is {value}; num_experts = {given} leaves room for experts {lowest}..{last}.",
        "zh": "{argument}[{position}] 是 {value}；num_experts = {given} 只容得下专家 {lowest}..{last}。",
    },
    fix={
        "en": "pass the number of experts plus 1: the first bucket is for -1, experts of other ranks.",
        "zh": "传入专家数加 1：第一个桶留给 -1，即其他 rank 的专家。",
    },
    note={
        "en": "It counts in shared memory outside its buckets: measured with 4 experts, 9 ended among those of -1 and -2 among "
        "those of expert 3",
        "zh": "会在共享内存里数到桶的外面去：4 个专家时测量过，9 归到了 -1 那一桶，-2 归到了专家 3",
    },
)

BUFFER_TOO_SMALL = Mistake(
    "buffer_too_small",
    what={
        "en": "{argument} has {got} entries; {needed} are needed.",
        "zh": "{argument} 有 {got} 项，需要 {needed} 项。",
    },
    fix={
        "en": "pairs + num_experts * (block_size - 1) entries for the tokens, one block_size-th of it for the blocks, "
        "num_experts + 1 for cumsum_buffer.",
        "zh": "token 的缓冲区取 对数 + num_experts * (block_size - 1) 项，块的缓冲区取它的 block_size 分之一，"
        "cumsum_buffer 取 num_experts + 1 项。",
    },
    note={
        "en": "It writes behind the buffer, into whatever lies there",
        "zh": "会写到缓冲区之外，那里是什么就覆盖什么",
    },
)

NUMBER_WRONG = Mistake(
    "number_wrong",
    what={
        "en": "{argument} is {value}; it must be at least {least}.",
        "zh": "{argument} 是 {value}，至少是 {least}。",
    },
    fix={
        "en": "num_experts counts the experts and one bucket more; block_size is the tile of the grouped product.",
        "zh": "num_experts 是专家数再加一个桶；block_size 是分组矩阵乘的分块大小。",
    },
)

INTEGER_BUFFER = Mistake(
    "index_types_differ",
    what={
        "en": "{argument} is {got}; it must be {expected}.",
        "zh": "{argument} 的类型是 {got}，应当是 {expected}。",
    },
    fix={"en": "the buffers are int32.", "zh": "这些缓冲区都是 int32。"},
)
