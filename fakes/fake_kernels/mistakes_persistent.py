"""What can be wrong with a call of BatchAttention alone: its lengths, its soft cap, the order of its calls.

Outcomes were measured on an H200 with flashinfer 0.7.2.post1; the notes are from its sources (attention/_core.py,
csrc/batch_attention.cu, attention/persistent.cuh).
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, raises

KV_LEN_NOT_INT32 = Mistake(
    "kv_len_not_int32",
    what={
        "en": "{argument} is {dtype}; it is read as int32.",
        "zh": "{argument} 是 {dtype}，kernel 按 int32 读取。",
    },
    fix={"en": "make it with dtype=torch.int32.", "zh": "创建时用 dtype=torch.int32。"},
    note={
        "en": "The type is not checked: int64 is read as pairs of int32 (measured), so every second request has length 0",
        "zh": "类型不会被检查：int64 会被当成成对的 int32 来读（测量过），于是每隔一个请求长度就是 0",
    },
)

KV_LEN_COUNT = Mistake(
    "kv_len_wrong_count",
    what={
        "en": "{argument} has {got} entries, the batch has {expected} requests.",
        "zh": "{argument} 有 {got} 项，这个 batch 有 {expected} 个请求。",
    },
    fix={
        "en": "one length for each request, where indptr has one entry more.",
        "zh": "每个请求一个长度；indptr 比它多一项。",
    },
    note={
        "en": "The number of requests is the length of kv_len_arr: with too few, the rows of the others are not written; with "
        "too many, the planner reads qo_indptr past its end and raised for the 0 that lay there",
        "zh": "请求数就是 kv_len_arr 的长度：少了，其余请求的行不会写；多了，planner 会读到 qo_indptr 末尾之外，测量时那里是 0，"
        "于是报错",
    },
)

KV_LEN_NEGATIVE = Mistake(
    "kv_len_negative",
    what={
        "en": "{argument} of request {position} is {value}.",
        "zh": "请求 {position} 的 {argument} 是 {value}。",
    },
    fix={"en": "it is the number of KV tokens, at least 0.", "zh": "它是 KV 的 token 数，最小为 0。"},
    real={"persistent": GARBAGE},
    note={
        "en": "The request's rows are not written: they keep what the memory held",
        "zh": "这个请求的行不会写，显存里原来是什么就是什么",
    },
)

KV_LEN_BEYOND_PAGES = Mistake(
    "kv_len_beyond_pages",
    what={
        "en": "request {position} has {value} KV tokens but only {pages} page(s) of {page_size}.",
        "zh": "请求 {position} 有 {value} 个 KV token，却只有 {pages} 页、每页 {page_size} 个位置。",
    },
    fix={
        "en": "give it ceil(length / page_size) pages in kv_indptr; kv_len_arr counts tokens, with those of this step.",
        "zh": "kv_indptr 里给它 ceil(长度 / page_size) 页；kv_len_arr 数的是 token，包括这一步的新 token。",
    },
    real={"persistent": GARBAGE},
    note={
        "en": "The kernel walks on into the pages of the next request",
        "zh": "kernel 会继续读到下一个请求的页里去",
    },
)

SOFT_CAP_DIFFERS = Mistake(
    "soft_cap_differs",
    what={
        "en": "logits_soft_cap is {value} at run, {planned} in the plan.",
        "zh": "run 的 logits_soft_cap 是 {value}，plan 的是 {planned}。",
    },
    fix={
        "en": "pass the same value to both: plan builds the kernel, run gives it the number, and its default is 0.",
        "zh": "两边传同一个值：plan 决定编译哪个 kernel，run 给出数值，默认是 0。",
    },
    real={"persistent": GARBAGE},
    note={
        "en": "The kernel uses the value of run; built with a cap and given 0 it divides by it",
        "zh": "kernel 用的是 run 的值；编译时带 cap 而 run 给 0，就会除以 0",
    },
)

NO_PLAN = raises(AttributeError, "'BatchAttention' object has no attribute '_use_profiler'", "run")
"""What run does before plan: it reads an attribute that only plan sets."""

CAP_WITHOUT_PLAN = raises(
    ValueError,
    "logits_soft_cap used in kernel run but not provided in plan(). This will cause template deduction error.",
    "run",
)

UNNOTICED = GARBAGE
"""Of q's type, KV heads and page size: run compares none of them with the plan (measured: float16 planned and bfloat16
given, 4 KV heads planned for 2, pages of 8 planned for 16)."""
