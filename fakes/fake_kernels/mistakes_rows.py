"""Mistakes in the small operators that work row by row (norms, activations, merging of states)."""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, raises

SHAPES_DIFFER = Mistake(
    "shapes_differ",
    what={
        "en": "{argument} has shape {got}; needed is {expected}.",
        "zh": "{argument} 的形状是 {got}，需要的是 {expected}。",
    },
    fix={"en": "see the function's docstring for the shapes.", "zh": "形状见函数的说明。"},
)

DTYPES_DIFFER = Mistake(
    "dtypes_differ",
    what={
        "en": "{argument} is {got}; needed is {expected}.",
        "zh": "{argument} 的类型是 {got}，需要的是 {expected}。",
    },
    fix={"en": "bring the tensors to one type.", "zh": "让几个张量的类型一致。"},
)

ODD_WIDTH = Mistake(
    "odd_width",
    what={
        "en": "the last dimension of {argument} is {value}, which has no two halves.",
        "zh": "{argument} 的最后一维是 {value}，分不成两半。",
    },
    fix={
        "en": "gate and up projections stand side by side: [..., 2 * hidden].",
        "zh": "gate 与 up 两个投影并排放在一起：[..., 2 * hidden]。",
    },
)

NOT_CONTIGUOUS = Mistake(
    "not_contiguous",
    what={
        "en": "{argument} is not contiguous (strides {stride}).",
        "zh": "{argument} 不连续（步长 {stride}）。",
    },
    fix={"en": "call .contiguous().", "zh": "调用 .contiguous()。"},
)

LSE_NOT_UPDATED = Mistake(
    "lse_not_updated",
    what={
        "en": "{argument} is {dtype}: the merged LSE would go into a float32 copy of it and be lost.",
        "zh": "{argument} 的类型是 {dtype}：合并后的 LSE 会写进它的 float32 副本，然后丢失。",
    },
    fix={
        "en": "keep the LSE in float32, as the attention wrappers return it.",
        "zh": "LSE 一直用 float32，注意力返回的就是 float32。",
    },
    real={"rows": GARBAGE},
    note={
        "en": "v is merged and s stays what it was, so the next merge weighs the parts wrongly",
        "zh": "v 合并了，s 还是原来的值，下一次合并的权重就错了",
    },
)

NO_ROWS = Mistake(
    "no_rows",
    what={
        "en": "{argument} has no rows: there is nothing to launch a kernel for.",
        "zh": "{argument} 一行也没有：没有要启动的 kernel。",
    },
    fix={"en": "skip the call for an empty batch.", "zh": "batch 为空时不要调用。"},
    real={"rows": raises(RuntimeError, "invalid configuration argument", "run")},
    note={
        "en": "A grid of no blocks can't be launched",
        "zh": "没有 block 的 grid 无法启动",
    },
)
