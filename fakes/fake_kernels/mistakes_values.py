"""Mistakes in single values that every kernel takes: numbers that are none, tensors that are none, memory that cannot be
written as it lies.

Memory was measured on an H200; types of errors, and the notes about numbers, are from the sources of flashinfer 0.7.2.post1.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, PATHS, raises

_BINDING = {
    "en": "Numbers go through a binding that is strict about their types",
    "zh": "数值要经过绑定层，它对类型要求严格",
}
_MISMATCH = dict.fromkeys(PATHS, raises(TypeError, "Mismatched type on argument"))
"""apache-tvm-ffi, of flashinfer; sgl_kernel's schemas refuse such values too, in words that nobody recorded."""

NOT_WHOLE = Mistake(
    "number_type",
    what={
        "en": "{argument} is {value}, a {type}; it must be a whole number.",
        "zh": "{argument} 是 {value}，类型是 {type}；应当是整数。",
    },
    fix={
        "en": "pass an int; a size that was divided needs //, one in a tensor .item().",
        "zh": "传 int；除法得来的尺寸要用 //，张量里的数要用 .item()。",
    },
    real={path: outcome for path, outcome in _MISMATCH.items() if path != "sgl"},
    note=_BINDING,
)

NOT_REAL = Mistake(
    NOT_WHOLE.code,
    what={
        "en": "{argument} is {value}, a {type}; it must be a number.",
        "zh": "{argument} 是 {value}，类型是 {type}；应当是一个数。",
    },
    fix={
        "en": "pass a float; one in a tensor needs .item().",
        "zh": "传 float；张量里的数要用 .item()。",
    },
    real=NOT_WHOLE.real,
    note=_BINDING,
)

NOT_A_FLAG = Mistake(
    NOT_WHOLE.code,
    what={
        "en": "{argument} is {value}, a {type}; it must be True or False.",
        "zh": "{argument} 是 {value}，类型是 {type}；应当是 True 或 False。",
    },
    fix={
        "en": "look whether an argument slipped by one place; pass options by keyword.",
        "zh": "看看是不是参数错了一位；选项按关键字传。",
    },
    note={
        "en": "Whatever is true counts as True, the word 'False' too",
        "zh": "只要为真就当作 True，字符串 False 也一样",
    },
)

OUT_OF_RANGE = Mistake(
    "number_out_of_range",
    what={
        "en": "{argument} is {value}; it must be {range}.",
        "zh": "{argument} 是 {value}，应当{range_zh}。",
    },
    fix={
        "en": "look where the number comes from; leaving the option out takes its default.",
        "zh": "看看这个数是怎么来的；不传就用默认值。",
    },
    note={"en": "Nothing checks it", "zh": "没有检查"},
)

NOT_A_TENSOR = Mistake(
    "not_a_tensor",
    what={"en": "{argument} is a {type}; it must be a tensor.", "zh": "{argument} 是 {type}，应当是张量。"},
    fix={
        "en": "pass a tensor of the documented shape and type.",
        "zh": "传入文档所写形状和类型的张量。",
    },
    real=dict.fromkeys(PATHS, raises(AttributeError, "'{type}' object has no attribute '{attribute}'")),
)

NOT_A_PAIR = Mistake(
    "not_a_pair",
    what={
        "en": "{argument} is {value}; it must be two whole numbers, (left, right).",
        "zh": "{argument} 是 {value}，应当是两个整数 (左, 右)。",
    },
    fix={
        "en": "(left, 0) is a causal window of left positions before a row's own; -1 is no limit.",
        "zh": "(left, 0) 是因果窗口：自己之前的 left 个位置；-1 表示不限。",
    },
    real={"sgl": raises(TypeError, "'{type}' object is not subscriptable", "run")},
)

OUT_STRIDES = Mistake(
    "out_not_contiguous",
    what={
        "en": "{argument} is not contiguous (strides {stride}).",
        "zh": "{argument} 不连续（步长 {stride}）。",
    },
    fix={
        "en": "allocate it with torch.empty(shape), and copy into a view afterwards.",
        "zh": "用 torch.empty(形状) 分配，之后再拷进视图。",
    },
    note={
        "en": "Shape and type are checked, strides are not: results are written as if it were contiguous, over other memory. "
        "Only fa3 goes by the strides of out",
        "zh": "只检查形状和类型，不看步长：结果按连续的布局写，写到别的内存上。只有 fa3 会按 out 的步长写",
    },
)

WORKSPACE_FORM = Mistake(
    "workspace_form",
    what={
        "en": "{argument} has shape {shape}; it must have one dimension.",
        "zh": "{argument} 的形状是 {shape}，应当是一维。",
    },
    fix={
        "en": "torch.empty(number_of_bytes, dtype=torch.uint8).",
        "zh": "torch.empty(字节数, dtype=torch.uint8)。",
    },
    real={"dec": raises(RuntimeError, "Buffer overflow when allocating memory", "run")},
    note={
        "en": "Its size is counted as the first dimension times the bytes of an entry: a plan that needs more raises",
        "zh": "大小按第一维乘以每项的字节数来算：plan 需要的更多时就会报错",
    },
)

GRAPH_BUFFER_FORM = Mistake(
    "graph_buffer_form",
    what={
        "en": "{argument} is {dtype} of shape {shape} with strides {stride}; needed is a contiguous vector of {expected}.",
        "zh": "{argument} 的类型是 {dtype}、形状 {shape}、步长 {stride}；需要的是连续的一维 {expected}。",
    },
    fix={
        "en": "torch.empty(size, dtype=torch.{expected}); slices of such a buffer are fine, columns are not.",
        "zh": "torch.empty(大小, dtype=torch.{expected})；这种缓冲区的切片可以用，取列不行。",
    },
    real={
        "dec": raises(
            RuntimeError,
            "Check failed: {tensor}.dtype() == dl_int32 (int64 vs. int32) : Inconsistency of Tensor type: {tensor}",
            "run",
        ),
        "tc": GARBAGE,
    },
    note={
        "en": "plan copies into the buffer whatever its type, and the kernels read its memory in order as int32; measured with "
        "int64. Only CUDA-core decode compares the type, at run",
        "zh": "plan 不论类型都往里拷，kernel 却按 int32 依次读内存；测量的是 int64。只有 CUDA core 的 decode 会在 run 时核对类型",
    },
)

BUFFERS_OVERLAP = Mistake(
    "graph_buffers_overlap",
    what={
        "en": "{argument} and {other} lie in the same memory.",
        "zh": "{argument} 和 {other} 占用同一块内存。",
    },
    fix={
        "en": "give each array a buffer of its own; [buffer] * n is one buffer n times.",
        "zh": "每个数组用自己的缓冲区；[buffer] * n 是同一个缓冲区出现 n 次。",
    },
    real={"dec": GARBAGE, "tc": GARBAGE},
    note={
        "en": "plan copies one array over the other",
        "zh": "plan 会用一个数组覆盖另一个",
    },
)

OVERLAPS_ITSELF = Mistake(
    "memory_overlaps_itself",
    what={
        "en": "entries of {argument} share memory (strides {stride}), and it is written.",
        "zh": "{argument} 有一些元素共用内存（步长 {stride}），而它会被写入。",
    },
    fix={
        "en": "allocate it with torch.empty(shape), or .clone() it: expand() makes no room.",
        "zh": "用 torch.empty(形状) 分配，或者 .clone()：expand() 不会分配内存。",
    },
    note={
        "en": "Nothing checks it: of the entries that share a place, whichever is written last remains",
        "zh": "没有检查：共用一处内存的元素，只留下最后写的那个",
    },
)

SAME_MEMORY = Mistake(
    "same_memory",
    what={
        "en": "{argument} and {other} share memory, and both are written.",
        "zh": "{argument} 和 {other} 共用内存，而两者都会被写。",
    },
    fix={
        "en": "clone one of them: residual = x is the same tensor under two names.",
        "zh": "clone 其中一个：residual = x 只是同一个张量的两个名字。",
    },
    real={"rows": GARBAGE},
    note={
        "en": "Nothing checks it: what is written first is lost or used twice (measured with fused_add_rmsnorm, which leaves "
        "the norm in both; the sum is lost)",
        "zh": "没有检查：先写的内容会丢失，或者被用了两次（测量的是 fused_add_rmsnorm：两个名字下都是归一化的结果，和丢失了）",
    },
)
