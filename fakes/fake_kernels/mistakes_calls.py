"""The ways to call the wrappers wrongly: order of plan and run, shapes and types of q and the cache,
buffers that change behind a plan's back.

Outcomes were measured on an H200 with flashinfer 0.7.2.post1, or are errors of its Python. Where the case decides they come
with the finding (`flashinfer._call_checks`, `flashinfer._plan`).
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import DIVISION_BY_ZERO, GARBAGE, HARMLESS, MISALIGNED, Outcome, Path, raises

_EVERY_PATH = ("dec", "tc", "fa2", "fa3")
_CACHE_READERS = (*_EVERY_PATH, "persistent", "rows")


def everywhere(
    raised: type[Exception], message: str, during: str = "run", paths: tuple[str, ...] = _EVERY_PATH
) -> dict[str, Outcome]:
    """The same error on several kernel paths."""
    return dict.fromkeys(paths, raises(raised, message, "plan" if during == "plan" else "run"))


RUN_BEFORE_PLAN = Mistake(
    "run_before_plan",
    what={"en": "run was called before plan.", "zh": "还没有 plan 就调用了 run。"},
    fix={
        "en": "call plan once a batch, before the first layer.",
        "zh": "每个 batch 在第一层之前调用一次 plan。",
    },
    real=everywhere(AttributeError, "'{wrapper}' object has no attribute '_cached_q_data_type'"),
)

CACHE_TYPE = Mistake(
    "cache_type",
    what={
        "en": "{argument} is a {type}; it must be a tuple (k, v) or one tensor.",
        "zh": "{argument} 是 {type}，应当是元组 (k, v) 或者一个张量。",
    },
    fix={"en": "pass (k_cache, v_cache) as a tuple.", "zh": "把 (k_cache, v_cache) 作为元组传入。"},
    real=everywhere(
        KeyError,
        "Unrecognized paged_kv_cache type {cls}, expect a single tensor or a tuple of tensor.",
        paths=_CACHE_READERS,
    ),
)

CACHE_DIMENSIONS = Mistake(
    "cache_dimensions",
    what={
        "en": "{argument} has shape {shape}.",
        "zh": "{argument} 的形状是 {shape}。",
    },
    fix={
        "en": "k and v are [pages, page_size, kv_heads, head_dim] (NHD) or [pages, kv_heads, "
        "page_size, head_dim] "
        "(HND), 3-D for page size 1; one tensor for both has a 2 after the pages.",
        "zh": "k、v 是 [页数, 页大小, KV 头, 维]（NHD）或 [页数, KV 头, 页大小, 维]（HND），三维表"
        "示页大小为 1；"
        "合成一个张量时在页数之后多一维 2。",
    },
    real=everywhere(ValueError, "{message}", paths=_CACHE_READERS),
)

CACHE_SHAPE = Mistake(
    "cache_shape",
    what={
        "en": "{argument} has {got} for {dimension}, plan was told {planned}.",
        "zh": "{argument} 的{dimension_zh}是 {got}，plan 时是 {planned}。",
    },
    fix={
        "en": "plan with the sizes of the cache, and check the layout (NHD or HND).",
        "zh": "plan 要用缓存的尺寸；检查布局（NHD 还是 HND）。",
    },
    note={
        "en": "Sizes are read from the tensors at run and not compared with the plan. Measured: 2 KV heads in a plan for 4, "
        "without pages 4 in a plan for 2, and the other layout, whose tokens are taken for heads",
        "zh": "run 时直接从张量读尺寸，不与 plan 比较。测量过三种：plan 是 4 个 KV 头而缓存只有 2 个；不分页时 plan 是 2 个而 "
        "k、v 有 4 个；布局弄反，token 数被当成头数",
    },
)
FEWER_KV_HEADS: dict[Path, Outcome] = {"dec": HARMLESS, "tc": HARMLESS, "fa2": GARBAGE, "fa3": HARMLESS}
"""A cache with fewer heads than planned: fa2 made its tiles of rows for smaller groups, the last rows are not computed."""
TOKENS_AS_HEADS: dict[Path, Outcome] = {
    "dec": raises(RuntimeError, "Unsupported group_size: {group}", "run"),
    "tc": GARBAGE,
    "fa2": GARBAGE,
    "fa3": DIVISION_BY_ZERO,
}
"""More KV heads than query heads, as the other layout has them: a group of 0."""

Q_DTYPE = Mistake(
    "q_dtype",
    what={
        "en": "q is {value}, but plan has q_data_type {planned}{default}.",
        "zh": "q 是 {value}，而 plan 的 q_data_type 是 {planned}{default_zh}。",
    },
    fix={
        "en": "pass q_data_type=q.dtype to plan; data_type alone does not set it.",
        "zh": "给 plan 传 q_data_type=q.dtype；只传 data_type 不会改变它。",
    },
    real=everywhere(
        ValueError,
        "The dtype of q {value} does not match the q_data_type {planned} specified in plan function.",
    ),
)

K_DTYPE = Mistake(
    "k_dtype",
    what={
        "en": "the K cache is {value}, but plan has kv_data_type {planned}.",
        "zh": "K 缓存是 {value}，而 plan 的 kv_data_type 是 {planned}。",
    },
    fix={"en": "pass kv_data_type=k_cache.dtype to plan.", "zh": "给 plan 传 kv_data_type=k_cache.dtype。"},
    real=everywhere(
        ValueError,
        "The dtype of k {value} does not match the kv_data_type {planned} specified in plan function.",
    ),
)

V_DTYPE = Mistake(
    "v_dtype",
    what={
        "en": "the V cache is {value}, but plan has kv_data_type {planned}.",
        "zh": "V 缓存是 {value}，而 plan 的 kv_data_type 是 {planned}。",
    },
    fix={
        "en": "K and V have one type, the kv_data_type of plan.",
        "zh": "K、V 类型相同，就是 plan 的 kv_data_type。",
    },
    note={
        "en": "The type of V is not checked: its bits are read as K's type",
        "zh": "V 的类型不会被检查：它的位按 K 的类型去读",
    },
)
V_READ_AS_K = GARBAGE
"""On every path; measured with bfloat16 for float16."""

Q_SHAPE = Mistake(
    "q_shape",
    what={
        "en": "q has shape {shape}, plan was told [rows, {heads}, {head_dim}].",
        "zh": "q 的形状是 {shape}，plan 时是 [行数, {heads}, {head_dim}]。",
    },
    fix={
        "en": "q is [rows, num_qo_heads, head_dim] of the plan.",
        "zh": "q 是 [行数, num_qo_heads, head_dim]，与 plan 一致。",
    },
    note={
        "en": "Heads of q are not compared with the plan. Measured with twice as many: prefill leaves some out, decode "
        "computed them; and with a head_dim twice as large, of which only the planned part is read, at another sm_scale",
        "zh": "q 的头数不会与 plan 比较。测量过头数加倍：prefill 会漏算一部分，decode 全都算了；还有 head_dim 加倍：只读计划的"
        "那部分，sm_scale 也随之不同",
    },
)
MORE_HEADS: dict[Path, Outcome] = {"dec": HARMLESS, "tc": HARMLESS, "fa2": GARBAGE, "fa3": GARBAGE}
WIDER_HEADS: dict[Path, Outcome] = {
    "dec": raises(
        RuntimeError,
        "Check failed: head_dim_qk == head_dim_vo ({got} vs. {dim}) : CUDA cores template only supports equal head dim for "
        "QK and VO, please use tensor cores template for different head dim",
        "run",
    ),
    "tc": GARBAGE,
    "fa2": GARBAGE,
    "fa3": GARBAGE,
}

Q_ROWS = Mistake(
    "q_rows",
    what={
        "en": "q has {value} rows, the plan is for {planned}.",
        "zh": "q 有 {value} 行，plan 的是 {planned} 行。",
    },
    fix={
        "en": "one row of q for each new token of the batch (decode: one for each request).",
        "zh": "batch 里每个新 token 对应 q 的一行（decode：每个请求一行）。",
    },
    note={
        "en": "Decode only divides the rows by the batch: up to one less than twice the rows pass. Rows beyond the plan are "
        "not written, and CUDA cores read past the end of indptr for them, which spoils all. With fewer rows they "
        "compute these and return no others",
        "zh": "decode 只用行数除以 batch：不到两倍的行数都能通过。多出的行不会写入；而 CUDA core 会为它们读到 indptr 末尾之外，"
        "所有行都跟着错。行数不够时只算出并返回给出的那些行",
    },
)

LAST_DIM_STRIDE = Mistake(
    "last_dim_not_contiguous",
    what={
        "en": "the last dimension of {tensor} has stride {stride}.",
        "zh": "{tensor} 最后一维的步长是 {stride}。",
    },
    fix={"en": "call .contiguous().", "zh": "调用 .contiguous()。"},
    note={
        "en": "Strides of the last dimension are not looked at, 16 bytes are read at once: measured where another stride is no "
        "multiple of 16 bytes",
        "zh": "不看最后一维的步长，一次读 16 字节；测量的是另有步长不是 16 字节整数倍的情况",
    },
)
APART: dict[tuple[str, Path], Outcome] = {
    **{(tensor, path): MISALIGNED for tensor in ("q", "K", "V") for path in ("dec", "tc", "fa2", "fa3")},
    ("q", "fa3"): Outcome("illegal", error="an illegal instruction was encountered"),
}
"""By tensor and path, where reads of 16 bytes are not aligned."""

KV_STRIDES = Mistake(
    "kv_strides_differ",
    what={
        "en": "K and V have different strides: {k} and {v}.",
        "zh": "K 与 V 的步长不同：{k} 与 {v}。",
    },
    fix={
        "en": "allocate both alike, or use use_tensor_cores=True for decode.",
        "zh": "两者用同样的方式分配；decode 也可以用 use_tensor_cores=True。",
    },
    real={
        "dec": raises(RuntimeError, "K/V strides differ at dim {dim}", "run"),
    },
    note={
        "en": "tc and fa2 take it; the first time a second module is compiled, for about a minute",
        "zh": "tc 与 fa2 可以接受，只是第一次会再编译一个模块，约一分钟",
    },
)

WINDOW_DIFFERS = Mistake(
    "window_left_differs",
    what={
        "en": "window_left is {value} at run, {planned} in the plan.",
        "zh": "run 的 window_left 是 {value}，plan 的是 {planned}。",
    },
    fix={"en": "leave it out at run, or plan again.", "zh": "run 时不要传，或者重新 plan。"},
    real=everywhere(AssertionError, ""),
)

OUT_MISMATCH = Mistake(
    "out_mismatch",
    what={
        "en": "{argument} has {got}, needed is {expected}.",
        "zh": "{argument} 是 {got}，需要的是 {expected}。",
    },
    fix={"en": "allocate it with that shape and type.", "zh": "按这个形状和类型分配。"},
    real=everywhere(ValueError, "{message}"),
)

BAD_OPTION = Mistake(
    "bad_option",
    what={
        "en": "{argument} is {value}.",
        "zh": "{argument} 是 {value}。",
    },
    fix={"en": "allowed: {allowed}.", "zh": "允许的值：{allowed_zh}。"},
)

GRAPH_BUFFERS = Mistake(
    "graph_buffers",
    what={
        "en": "under CUDA graphs the wrapper works in buffers that the caller gives: {message}.",
        "zh": "CUDA graph 模式下 wrapper 使用调用者给的缓冲区：{message}。",
    },
    fix={
        "en": "indptr buffers have batch + 1 entries, last_page_len batch, indices room for every page; "
        "one wrapper for each batch size.",
        "zh": "indptr 缓冲区有 batch + 1 项，last_page_len 有 batch 项，indices 放得下所有的页；每"
        "种 batch 大小一个 wrapper。",
    },
    real=everywhere(ValueError, "{message}", "plan"),
)

PLAN_OVERWRITTEN = Mistake(
    "plan_overwritten",
    what={
        "en": "another plan was written into this wrapper's int workspace since its own plan.",
        "zh": "这个 wrapper plan 之后，它的 int workspace 又被另一次 plan 写过。",
    },
    fix={
        "en": "wrappers that share _int_workspace_buffer take turns: plan, all runs of that batch, "
        "then the next plan.",
        "zh": "共用 _int_workspace_buffer 的 wrapper 要轮流：plan，跑完这个 batch 的所有 run，再做"
        "下一次 plan。",
    },
    real=dict.fromkeys(_EVERY_PATH, GARBAGE),
    note={
        "en": "The kernel follows the other batch's schedule; measured with plans of two different batches",
        "zh": "kernel 会按另一个 batch 的调度去跑；测量的是两个不同 batch 的 plan",
    },
)

SECOND_PLAN = Mistake(
    "second_plan_before_run",
    what={
        "en": "a second plan on the same pinned buffer before the first was run: the first plan's "
        "copy to the "
        "GPU may not have happened yet, and would carry the second plan.",
        "zh": "第一次 plan 还没有 run，又在同一块锁页缓冲区上做了第二次 plan：第一次的拷贝可能还没有发生，"
        "这时拷过去的是第二次的内容。",
    },
    fix={
        "en": "run a plan before the next one; on a GPU also wait for an event recorded after the plan.",
        "zh": "先 run 再做下一次 plan；在 GPU 上还要等待 plan 之后记录的事件。",
    },
    real=dict.fromkeys(_EVERY_PATH, HARMLESS),
    note={
        "en": "Both plans use one pinned host buffer and an asynchronous copy. All results were right where indptr was on the "
        "GPU: fetching it waits for the copy before. With indptr on the CPU, or on another stream, nothing waits; that was "
        "not measured",
        "zh": "两次 plan 用同一块锁页内存做异步拷贝。indptr 在 GPU 上时测得的结果都对：取回它时会等待前一次的拷贝。"
        "indptr 在 CPU 上或者用另一个 stream 时没有等待，这种情况没有测量过",
    },
)

CHANGED_AFTER_PLAN = Mistake(
    "changed_after_plan",
    what={
        "en": "{argument} was changed after plan(non_blocking=True).",
        "zh": "plan(non_blocking=True) 之后 {argument} 被改动了。",
    },
    fix={
        "en": "give every batch tensors of its own, or plan again after the change.",
        "zh": "每个 batch 用自己的张量；改动之后要重新 plan。",
    },
    real=dict.fromkeys(_EVERY_PATH, GARBAGE),
    note={
        "en": "The copy is asynchronous: the kernel may see the old or the new values, the "
        "schedule is of the old ones",
        "zh": "拷贝是异步的：kernel 看到的可能是旧值也可能是新值，而调度是按旧值做的",
    },
)

STALE_PLAN = Mistake(
    "stale_plan",
    what={
        "en": "the page counts in {argument} changed since plan, at entry {position}: {planned}, "
        "now {value}.",
        "zh": "plan 之后 {argument} 里的页数变了，第 {position} 项：原来 {planned}，现在 {value}。",
    },
    fix={
        "en": "under CUDA graphs call plan for every batch too, before the replay.",
        "zh": "CUDA graph 下同样要为每个 batch 调用 plan，然后再 replay。",
    },
    note={
        "en": "Lengths are read from the buffers but the split of the work is the old one: what grows beyond its old chunks is "
        "cut short there, what stays within them is right by luck. CUDA-core decode does not come back when a chunk is left "
        "empty",
        "zh": "长度从缓冲区读，工作划分却还是旧的：超出原来分块的部分会被截断，没有超出的碰巧是对的。某个分块空出来时，"
        "CUDA core 的 decode 不再返回",
    },
)
