"""Mistakes in the small operators that work row by row (norms, activations, merging of states), and those that all
operators without a plan share.

Outcomes were measured on an H200 with flashinfer 0.7.2.post1 and sglang-kernel 0.4.6, or are errors that their sources
raise. What has neither nobody measured.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, NAN, raises

NOT_A_TENSOR = Mistake(
    "not_a_tensor",
    what={"en": "{argument} is a {type}; it must be a tensor.", "zh": "{argument} 是 {type}，应当是张量。"},
    fix={"en": "torch.tensor(...) makes one.", "zh": "用 torch.tensor(...) 创建。"},
)

DIMENSIONS = Mistake(
    "wrong_dimensions",
    what={
        "en": "{argument} has {got} dimension(s), shape {shape}; needed is {expected}.",
        "zh": "{argument} 有 {got} 维，形状是 {shape}；需要 {expected} 维。",
    },
    fix={"en": "see the function's docstring for the shapes.", "zh": "形状见函数的说明。"},
)

DIMENSIONS_CHECKED = Mistake(
    DIMENSIONS.code,
    what=DIMENSIONS.what,
    fix=DIMENSIONS.fix,
    real={"rows": raises(RuntimeError, "{argument} must be a {expected}D tensor", "run")},
)

NOT_FLOATS = Mistake(
    "dtypes_differ",
    what={
        "en": "{argument} is {dtype}; needed is float16 or bfloat16 (the fakes take float32 too).",
        "zh": "{argument} 的类型是 {dtype}，需要 float16 或 bfloat16（假 kernel 也接受 float32）。",
    },
    fix={"en": "bring it to the model's type.", "zh": "转成模型的类型。"},
    note={"en": "No kernel is built for other types", "zh": "没有为其他类型编译的 kernel"},
)

COMPLEX = Mistake(
    "dtypes_differ",
    what={"en": "{argument} is complex.", "zh": "{argument} 是复数。"},
    fix={"en": "no kernel takes complex numbers.", "zh": "没有 kernel 接受复数。"},
)

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
    real={"rows": raises(RuntimeError, "{argument} must be contiguous", "run")},
)

STRIDES_IGNORED = Mistake(
    NOT_CONTIGUOUS.code,
    what=NOT_CONTIGUOUS.what,
    fix=NOT_CONTIGUOUS.fix,
    real={"rows": GARBAGE},
    note={
        "en": "Strides are not looked at: it reads one row after the other from the first element on",
        "zh": "不看步长：从第一个元素起，一行接一行地读",
    },
)

LAST_DIM_STRIDED = Mistake(
    "last_dim_not_contiguous",
    what={
        "en": "the last dimension of {argument} is not contiguous (strides {stride}).",
        "zh": "{argument} 的最后一维不连续（步长 {stride}）。",
    },
    fix={
        "en": "call .contiguous(); rows may be apart, the numbers of a row may not.",
        "zh": "调用 .contiguous()；行与行可以隔开，一行之内的数必须相邻。",
    },
    real={"rows": raises(RuntimeError, "{real_name}.stride(-1) == 1 ({last} vs. 1)", "run")},
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

HEAD_NOT_PACKED = Mistake(
    "head_dim_unaligned",
    what={
        "en": "{argument} has head_dim {value}; it must be a multiple of {pack} (16 bytes).",
        "zh": "{argument} 的 head_dim 是 {value}，应当是 {pack} 的倍数（16 字节）。",
    },
    fix={"en": "pad the heads, or merge with flashinfer.", "zh": "补齐 head，或者用 flashinfer 合并。"},
)

ROW_NOT_PACKED = Mistake(
    "row_unaligned",
    what={
        "en": "the last dimension of {argument} is {value}, {bytes} bytes: no multiple of 16.",
        "zh": "{argument} 的最后一维是 {value}，共 {bytes} 字节，不是 16 的倍数。",
    },
    fix={
        "en": "make 2 * hidden a multiple of 8 half numbers.",
        "zh": "让 2 * hidden 是 8 个半精度数的倍数。",
    },
    real={"rows": raises(ValueError, "The pointers must be multiple of 16 bytes.", "run")},
)

WEIGHT_BITS = Mistake(
    DTYPES_DIFFER.code,
    what=DTYPES_DIFFER.what,
    fix=DTYPES_DIFFER.fix,
    real={"rows": GARBAGE},
    note={
        "en": "Types are not compared: its bits are taken for numbers of the input's type (measured with float32 for "
        "float16; zeros stay zeros)",
        "zh": "不会核对类型：它的比特被当成 input 的类型（测量的是 float32 充当 float16；0 还是 0）",
    },
)

WIDTHS_DIFFER = Mistake(
    SHAPES_DIFFER.code,
    what=SHAPES_DIFFER.what,
    fix=SHAPES_DIFFER.fix,
    real={"rows": raises(RuntimeError, "{message}", "run")},
)

BOTH_EMPTY = Mistake(
    "both_states_empty",
    what={
        "en": "both states are empty (LSE -inf) at row, head {position}.",
        "zh": "行、头为 {position} 处，两个状态都是空的（LSE 为 -inf）。",
    },
    fix={
        "en": "flashinfer's merge_state gives 0 and -inf there (base 2), or set these rows yourself.",
        "zh": "flashinfer 的 merge_state 会给出 0 和 -inf（以 2 为底），也可以自己处理这些行。",
    },
    real={"rows": NAN},
    note={
        "en": "It computes exp((-inf) - (-inf)), so this row's output and LSE are NaN",
        "zh": "它会算 exp((-inf) - (-inf))，这一行的输出和 LSE 都是 NaN",
    },
)
