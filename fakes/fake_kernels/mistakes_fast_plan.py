"""The ways to call fast_decode_plan wrongly: it chooses no kernel, copies no batch and builds no module.

Measured on an H200 unless a comment says otherwise; messages are those of flashinfer 0.7.2.post1.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.mistakes_calls import CHANGED_AFTER_PLAN, everywhere
from fake_kernels.outcomes import GARBAGE, IGNORED, NAN, Outcome

_DECODE = ("dec", "tc")

CHANGED_AFTER_FAST_PLAN = Mistake(
    CHANGED_AFTER_PLAN.code,
    what={
        "en": "{argument} was changed after fast_decode_plan, which copied nothing.",
        "zh": "fast_decode_plan 之后 {argument} 被改动了，而它什么都没有拷贝。",
    },
    fix={
        "en": "leave the tensors of a batch alone until its last run, or call plan, which copies them.",
        "zh": "这个 batch 的最后一次 run 之前不要改这些张量，或者调用会拷贝的 plan。",
    },
    real=dict.fromkeys(_DECODE, GARBAGE),
    note={
        "en": "The kernel reads the tensors themselves: it computes the pages that stand there when it runs, while the "
        "schedule is of the old ones",
        "zh": "kernel 直接读这些张量：run 时里面是哪些页，算的就是哪些页，而调度是按旧值做的",
    },
)

BUFFER_NOT_FILLED = Mistake(
    "buffer_not_filled",
    what={
        "en": "{argument} does not hold the batch that fast_decode_plan was given.",
        "zh": "{argument} 里不是交给 fast_decode_plan 的那个 batch。",
    },
    fix={
        "en": "under CUDA graphs write the batch into the wrapper's buffers, or call plan, which copies it.",
        "zh": "CUDA graph 下要自己把 batch 写进 wrapper 的缓冲区，或者调用会拷贝的 plan。",
    },
    real=dict.fromkeys(_DECODE, GARBAGE),
    note={
        "en": "fast_decode_plan copies nothing: the kernel computes the batch that the buffers still hold",
        "zh": "fast_decode_plan 什么都不拷贝：kernel 算的是缓冲区里原来的 batch",
    },
)

FAST_PLAN_FIRST = Mistake(
    "fast_plan_first",
    what={
        "en": "fast_decode_plan was called before any plan.",
        "zh": "还没有 plan 过就调用了 fast_decode_plan。",
    },
    fix={
        "en": "call plan once: it chooses the kernel that later fast plans go on with.",
        "zh": "先调用一次 plan：后面的 fast_decode_plan 沿用它选定的 kernel。",
    },
    real=everywhere(
        RuntimeError,
        "Error in standard plan: '{wrapper}' object has no attribute '_cached_module'",
        "plan",
        _DECODE,
    ),
)

FAST_PLAN_KERNEL = Mistake(
    "fast_plan_kernel",
    what={
        "en": "{argument} is {value}, the last plan chose its kernel for {planned}.",
        "zh": "{argument} 是 {value}，而上一次 plan 是按 {planned} 选的 kernel。",
    },
    fix={
        "en": "call plan when the types, head_dim, the presence of a cap or the positions change, or a window comes in.",
        "zh": "类型、head_dim、有无 soft cap、位置编码改变时，或者开始用窗口时，要调用 plan。",
    },
    note={
        "en": "fast_decode_plan never looks for another kernel: the compiled one runs with what it was compiled for",
        "zh": "fast_decode_plan 不会另选 kernel：跑的仍是按原来的设置编译的那个",
    },
)


def _other_kernel(real: dict[str, Outcome]) -> Mistake:
    """FAST_PLAN_KERNEL about one argument, with what was measured about it."""
    told = FAST_PLAN_KERNEL
    return Mistake(told.code, what=told.what, fix=told.fix, note=told.note, real=real)


_OTHER_TYPE = (
    "The dtype of {tensor} {value} does not match the {argument} {planned} specified in plan function."
)
FAST_PLAN_TYPE = _other_kernel(everywhere(ValueError, _OTHER_TYPE, paths=_DECODE))
FAST_PLAN_HEAD_DIM = _other_kernel(dict.fromkeys(_DECODE, GARBAGE))
FAST_PLAN_CAP = _other_kernel(dict.fromkeys(_DECODE, IGNORED))
FAST_PLAN_WINDOW = _other_kernel({"dec": IGNORED, "tc": GARBAGE})
FAST_PLAN_CAP_LEFT_OUT = _other_kernel({"dec": GARBAGE, "tc": NAN})
FAST_PLAN_ROPE = _other_kernel(dict.fromkeys(_DECODE, IGNORED))
FAST_PLAN_ROPE_STAYS = _other_kernel(dict.fromkeys(_DECODE, GARBAGE))

FAST_PLAN_OVERRIDE = Mistake(
    "fast_plan_override",
    what={
        "en": "{argument} differs from indptr.",
        "zh": "{argument} 与 indptr 不一致。",
    },
    fix={
        "en": "give the same numbers on the CPU, or leave it out.",
        "zh": "在 CPU 上给出同样的数，或者不传。",
    },
    note={
        "en": "The schedule is made from this one, while the kernel reads the lengths from indptr: right by luck where the "
        "chunks cover them, cut short where they don't. CUDA-core decode does not come back when a chunk is left empty",
        "zh": "调度按它来做，kernel 却从 indptr 读长度：分块够长时结果碰巧是对的，不够长就会被截断。某个分块空出来时，"
        "CUDA core 的 decode 不再返回",
    },
)
