"""Mistakes in the small operators that work row by row (norms, activations, merging of states)."""

from __future__ import annotations

from fake_kernels.findings import Mistake

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
