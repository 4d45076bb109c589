"""The ways to give a kernel the wrong mask, positions or sinks: what is wrong with each, and what
flashinfer 0.7.2.post1 does about it.

Measured on an H200 with the paged wrapper, the stale mask with the ragged one; where the case decides, the outcome comes with
the finding (`checks_masks`). Where the library's Python raises, that error is the outcome. The notes say what its source does
with the rest, and faithful mode refuses to guess.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, IGNORED, Outcome, Path, raises

_SEGFAULT = Outcome("dies", error="SIGSEGV")

MASK_SIZE = Mistake(
    "mask_size",
    what={
        "en": "{argument} has {got} entries, the batch needs {expected}: q rows times KV length, added up over "
        "the requests.",
        "zh": "{argument} 有 {got} 项，这个 batch 需要 {expected} 项：各请求的 q 行数乘 KV 长度之和。",
    },
    fix={
        "en": "flatten the [q rows, KV length] mask of each request and join them in the order of the batch.",
        "zh": "把每个请求的 [q 行数, KV 长度] 掩码展平，按 batch 的顺序接起来。",
    },
    note={
        "en": "The size is not compared: the packing kernel reads past the end. Measured with a mask too short: what lay "
        "behind it was no mask",
        "zh": "不核对大小：打包的 kernel 会读到末尾之外。测量的是掩码太短的情况，后面的内存并不是掩码",
    },
)

MASK_TYPE = Mistake(
    "mask_type",
    what={
        "en": "{argument} is {dtype}; it must be {expected}.",
        "zh": "{argument} 的类型是 {dtype}，应当是 {expected}。",
    },
    fix={
        "en": "custom_mask is bool, True = seen; packed_custom_mask is what packbits(..., bitorder='little') gives.",
        "zh": "custom_mask 是 bool，True 表示看得见；packed_custom_mask 是 packbits(..., bitorder='little') "
        "的结果。",
    },
    note={
        "en": "The packing kernel takes the bytes of the tensor for booleans, and any but 0 and 1 spill over to their "
        "neighbours; measured with float32",
        "zh": "打包的 kernel 把张量的字节直接当成布尔值，0 和 1 以外的值还会影响相邻的位；测量的是 float32",
    },
)

MASK_VALUES = Mistake(
    MASK_TYPE.code,
    what={
        "en": "{argument} is uint8 and holds {value}; a mask holds 0 and 1.",
        "zh": "{argument} 是 uint8，里面有 {value}；掩码里只能有 0 和 1。",
    },
    fix=MASK_TYPE.fix,
    note=MASK_TYPE.note,
)

PACKED_SIZE = Mistake(
    "packed_mask_size",
    what={
        "en": "{argument} has {got} bytes; the mask of this batch takes {expected}.",
        "zh": "{argument} 有 {got} 字节，这个 batch 的掩码需要 {expected} 字节。",
    },
    fix={
        "en": "pack the flattened [q rows, KV length] mask with packbits(mask, bitorder='little').",
        "zh": "把展平的 [q 行数, KV 长度] 掩码用 packbits(mask, bitorder='little') 打包。",
    },
    note={"en": "The size is not compared", "zh": "不核对大小"},
)

PACKED_SEGMENTS = Mistake(
    "packed_mask_of_several_requests",
    what={
        "en": "{argument} holds the bits of {batch} requests one after the other ({got} bytes), but the kernel "
        "looks for those of request {request} at byte {start}.",
        "zh": "{argument} 里 {batch} 个请求的位首尾相接（{got} 字节），而 kernel 从第 {start} 字节开始找请求 "
        "{request} 的位。",
    },
    fix={
        "en": "pass custom_mask and let plan pack it; only a batch of one request can be packed before.",
        "zh": "传 custom_mask，让 plan 去打包；只有单个请求的 batch 可以事先打包。",
    },
    note={
        "en": "plan counts the starts in elements when it gets packed bits, and the kernel takes them for bytes: only the first "
        "request is right",
        "zh": "拿到打包好的位时，plan 按元素数算起点，kernel 却把它当成字节数：只有第一个请求是对的",
    },
)

MASK_OF_EMPTY = Mistake(
    "mask_with_empty_request",
    what={
        "en": "request {request} has {rows} rows of q and no pages: with a custom mask plan counts its KV length "
        "as {length}.",
        "zh": "请求 {request} 有 {rows} 行 q，却没有页：有自定义掩码时 plan 把它的 KV 长度算成 {length}。",
    },
    fix={
        "en": "leave requests without KV out of a batch with a custom mask.",
        "zh": "用自定义掩码的 batch 里不要放没有 KV 的请求。",
    },
    note={
        "en": "The bits of all requests behind it are looked for at wrong places, measured where one of them lay before the "
        "mask's beginning",
        "zh": "它后面所有请求的位都会找错地方；测量的情况里，其中一处落在掩码的开头之前",
    },
)
MASK_BEFORE_BEGINNING = Outcome("illegal", error="operation not supported on global/shared address space")
OF_PAGED_MASKS: dict[str, dict[Path, Outcome]] = {
    "mask_size": {"fa2": GARBAGE},
    "mask_type": {"fa2": GARBAGE},
    "packed_mask_of_several_requests": {"fa2": GARBAGE},
    "mask_with_empty_request": {"fa2": MASK_BEFORE_BEGINNING},
    "mask_on_fa3": {
        "fa3": raises(
            RuntimeError,
            "Check failed: (status == cudaSuccess) is false: BatchPrefillWithPagedKVCacheSM90Run failed with error: operation "
            "not supported",
            "run",
        )
    },
}
"""By code. These mistakes are also made without pages, where nobody measured them."""

MASK_ON_FA3 = Mistake(
    "mask_on_fa3",
    what={
        "en": "{argument} is given, and the backend is fa3, which has no custom masks.",
        "zh": "给了 {argument}，而后端是 fa3，它不支持自定义掩码。",
    },
    fix={
        "en": "use backend='fa2', or 'auto' in a wrapper of its own: 'auto' stays what the first plan made of it.",
        "zh": '用 backend="fa2"，或者给它单独一个 "auto" 的 wrapper："auto" 在第一次 plan 时就定下来了。',
    },
    note={
        "en": "The kernel's launch returns cudaErrorNotSupported",
        "zh": "kernel 启动时返回 cudaErrorNotSupported",
    },
)

STALE_MASK = Mistake(
    "mask_of_an_earlier_plan",
    what={
        "en": "this plan has no mask, but an earlier plan of this wrapper had one.",
        "zh": "这次 plan 没有掩码，但这个 wrapper 之前的 plan 有。",
    },
    fix={
        "en": "use one wrapper for batches with a mask and another for those without.",
        "zh": "有掩码和没有掩码的 batch 各用一个 wrapper。",
    },
    real={"fa2": GARBAGE},
    note={
        "en": "The ragged wrapper keeps the old mask and goes on using it, causal or not",
        "zh": "ragged wrapper 会留着旧的掩码继续用，causal 也不起作用",
    },
)

MASK_BUFFERS = Mistake(
    "mask_buffers",
    what={
        "en": "a mask under CUDA graphs needs buffers given at construction: {message}.",
        "zh": "CUDA graph 模式下的掩码要用构造时给的缓冲区：{message}。",
    },
    fix={
        "en": "pass custom_mask_buf (uint8, room for all bits) and mask_indptr_buf (int32 [batch + 1]).",
        "zh": "构造时传 custom_mask_buf（uint8，放得下所有的位）和 mask_indptr_buf（int32 [batch + 1]）。",
    },
    real=dict.fromkeys(("fa2", "fa3"), raises(ValueError, "{message}")),
)

MASK_MISSING = Mistake(
    "mask_missing_under_graphs",
    what={
        "en": "this plan has no mask, but the wrapper was built with custom_mask_buf for CUDA graphs.",
        "zh": "这次 plan 没有掩码，但这个 wrapper 构造时为 CUDA graph 给了 custom_mask_buf。",
    },
    fix={
        "en": "give every plan of this wrapper a mask, or build one without the mask's buffers for the other batches.",
        "zh": "这个 wrapper 的每次 plan 都给掩码；没有掩码的 batch 另建一个不带掩码缓冲区的 wrapper。",
    },
    real={"fa2": GARBAGE},
    note={
        "en": "Every run reads its mask from the buffer, whatever stands there, and causal plays no part",
        "zh": "每次 run 都从缓冲区读掩码，不管里面是什么，causal 也不起作用",
    },
)

SINKS_IGNORED = Mistake(
    "sinks_ignored",
    what={
        "en": "sinks were given to run; this kernel doesn't have them.",
        "zh": "给 run 传了 sinks，而这个 kernel 没有 sink。",
    },
    fix={
        "en": "use BatchAttentionWithAttentionSinkWrapper, or sinks= of sgl_kernel's flash_attn functions.",
        "zh": "用 BatchAttentionWithAttentionSinkWrapper，或者 sgl_kernel 的 flash_attn 函数的 sinks=。",
    },
    real=dict.fromkeys(("dec", "tc", "fa2", "fa3"), IGNORED),
    note={
        "en": "Only the trtllm-gen, cudnn and cute-dsl backends look at sinks",
        "zh": "只有 trtllm-gen、cudnn、cute-dsl 后端会用 sinks",
    },
)

SINKS_BY_KEYWORD = Mistake(
    SINKS_IGNORED.code,
    what={
        "en": "sinks were given by keyword; a wrapper with a variant takes the variant's values by position.",
        "zh": "sinks 是按关键字传的；带变体的 wrapper 按位置接收变体的值。",
    },
    fix={
        "en": "pass them behind the cache: run(q, paged_kv_cache, sinks).",
        "zh": "放在缓存后面按位置传：run(q, paged_kv_cache, sinks)。",
    },
    real={"fa2": _SEGFAULT},
    note={
        "en": "The keyword is for other backends and dropped, so the variant lacks its tensor",
        "zh": "这个关键字是给别的后端的，会被丢掉，于是变体缺少它的张量",
    },
)

SINKS_SHAPE = Mistake(
    "sinks_shape",
    what={
        "en": "{argument} has shape {got} and type {dtype}; needed is [{heads}], {expected}.",
        "zh": "{argument} 的形状是 {got}，类型 {dtype}；需要的是 [{heads}]，{expected}。",
    },
    fix={"en": "one logit for each query head.", "zh": "每个 query 头一个 logit。"},
)
VARIANT_SINKS_SHAPE = Mistake(
    SINKS_SHAPE.code,
    what=SINKS_SHAPE.what,
    fix=SINKS_SHAPE.fix,
    note={
        "en": "float32 values are read from its address on: a half type's bytes as such, and past the end of a tensor that "
        "is too short (measured with the first 4 of 8: the other 4 still lay behind them)",
        "zh": "从它的地址起按 float32 依次读：半精度的字节也这样解释，张量太短则会读到末尾之后（测量的是 8 个中的前 4 个："
        "另外 4 个还在后面的内存里）",
    },
)
SINKS_READ_AS_FLOAT: dict[Path, Outcome] = {"fa2": GARBAGE}
"""Sinks of a half type in the sink wrapper: their bytes are taken for float32 values."""

SINK_WINDOW = Mistake(
    "sink_window",
    what={
        "en": "window_left is {value} in the plan, and the wrapper was built for {planned}.",
        "zh": "plan 的 window_left 是 {value}，而这个 wrapper 构造时{planned_zh}。",
    },
    fix={
        "en": "give window_left to the constructor and to plan, or to neither.",
        "zh": "window_left 在构造时和 plan 时都给，或者都不给。",
    },
    note={
        "en": "On fa2 the window of the plan counts, whatever the wrapper was built for; fa3 compiles in whether there is one",
        "zh": "fa2 按 plan 的窗口算，与构造时无关；fa3 把有没有窗口编译进去了",
    },
)

JIT_ARGUMENT = Mistake(
    "jit_argument",
    what={
        "en": "run got {got} of the values that the variant declares: {names}.",
        "zh": "这个变体声明了 {names}，run 只拿到其中 {got} 个。",
    },
    fix={
        "en": "pass them to run by position: all additional tensors, then the scalars, in the declared order.",
        "zh": "按位置传给 run：先是全部附加张量，再是标量，次序与声明一致。",
    },
    real={"fa2": _SEGFAULT},
    note={
        "en": "A tensor that is missing becomes a null pointer; a scalar of unknown name is a ValueError",
        "zh": "缺的张量会变成空指针；名字认不出的标量会抛 ValueError",
    },
)

JIT_PLAN = Mistake(
    "jit_plan_differs",
    what={
        "en": "plan is for {value}, the variant was declared for {planned}.",
        "zh": "plan 的是 {value}，而变体声明的是 {planned}。",
    },
    fix={
        "en": "plan with the types and head dimensions of jit_args, or build another wrapper.",
        "zh": "plan 用 jit_args 里的类型和 head_dim，或者另建一个 wrapper。",
    },
    real={"fa2": GARBAGE},
    note={
        "en": "The compiled module reads whatever it gets as its own types and dimensions; measured with heads of 128 for a "
        "variant of 64",
        "zh": "编译好的模块会把收到的数据都按自己的类型和维数去读；测量的是声明 64 维而实际 128 维的情况",
    },
)

BIT_ORDER = Mistake(
    "bit_order",
    what={"en": "bitorder is {value}.", "zh": "bitorder 是 {value}。"},
    fix={
        "en": "'big' or 'little'; masks of kernels are 'little'.",
        "zh": "big 或 little；kernel 的掩码用 little。",
    },
    real={"rows": raises(RuntimeError, "bitorder must be 'big' or 'little'", "run")},
)

SEGMENTS = Mistake(
    "segments",
    what={
        "en": "indptr is {entries}, x has shape {shape} and type {dtype}: the segments must cover a flat bool "
        "tensor.",
        "zh": "indptr 是 {entries}，x 的形状是 {shape}、类型是 {dtype}：各段应当正好覆盖一维的 bool 张量。",
    },
    fix={
        "en": "0 first, then the running sum of the segments' elements; the last entry is len(x).",
        "zh": "先是 0，然后是各段元素数的累加和，最后一项是 len(x)。",
    },
)
