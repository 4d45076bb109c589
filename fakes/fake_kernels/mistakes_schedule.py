"""What a planner itself refuses: workspaces that are too small, and batches that its schedule has no room for."""

from __future__ import annotations

from fake_kernels.findings import Mistake

WORKSPACE_TOO_SMALL = Mistake(
    "workspace_too_small",
    what={
        "en": "{argument} has {bytes} bytes, this plan needs {needed}.",
        "zh": "{argument} 有 {bytes} 字节，这次 plan 需要 {needed} 字节。",
    },
    fix={
        "en": "allocate more, once and for the largest batch; 128 MiB of float workspace is usual. plan_info says what "
        "a plan needs and why.",
        "zh": "按最大的 batch 一次分配足够的空间，float workspace 通常用 128 MiB；plan_info 会说明一次 plan 需要多少、为什么。",
    },
    note={
        "en": "When KV is split over blocks, each leaves a partial vector and an LSE in float32 there for every row "
        "and head; without splitting nothing is needed",
        "zh": "KV 被分给多个 block 时，每个 block 要为每一行、每个头在这里留下 float32 的部分结果和 LSE；不切分就不需要",
    },
)

PLANNER_REFUSES = Mistake(
    "planner_refuses",
    what={
        "en": "the planner has no schedule for this batch: {message}",
        "zh": "调度器排不出这个 batch：{message}",
    },
    fix={
        "en": "make the batch smaller, or leave {argument} at its default.",
        "zh": "把 batch 变小，或者让 {argument} 用默认值。",
    },
)
