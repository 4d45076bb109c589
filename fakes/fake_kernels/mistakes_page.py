"""Mistakes in writing new tokens into a paged cache: where they go, and who owns that place.

Outcomes were measured on an H200 with flashinfer 0.7.2.post1, or are errors that its sources raise (`page.py`, `page.cu`).
What has neither nobody measured, and faithful mode refuses it; the notes say what the sources do (`page.cuh`,
`triton/page.py`).
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, HARMLESS, ILLEGAL, raises

BATCH_INDEX_UNFILLED = Mistake(
    "batch_index_unfilled",
    what={
        "en": "{argument} of row {position} is {value}: this row belongs to no request.",
        "zh": "第 {position} 行的 {argument} 是 {value}：这一行不属于任何请求。",
    },
    fix={
        "en": "append only the first append_indptr[-1] rows: rows that get_batch_indices_positions didn't fill hold -1.",
        "zh": "只追加前 append_indptr[-1] 行：get_batch_indices_positions 没有填到的行是 -1。",
    },
    real={"rows": ILLEGAL},
    note={
        "en": "It reads kv_indptr in front of its first entry and writes wherever that points",
        "zh": "kernel 会去读 kv_indptr 第一项之前的内存，并写到它指向的地方",
    },
)

BATCH_INDEX_OUT_OF_RANGE = Mistake(
    "batch_index_out_of_range",
    what={
        "en": "{argument} of row {position} is {value}; there are {batch} requests.",
        "zh": "第 {position} 行的 {argument} 是 {value}，而请求只有 {batch} 个。",
    },
    fix={
        "en": "it is the number of the row's request, 0..{last}.",
        "zh": "它是这一行所属请求的编号，0..{last}。",
    },
    note={
        "en": "It reads kv_indptr and kv_indices past their ends and writes wherever that points (measured with the number of "
        "requests itself: zeros lay there, and page 0 was overwritten)",
        "zh": "kernel 会去读 kv_indptr 和 kv_indices 末尾之后的内存，并写到它指向的地方（测量的值等于请求数：那里是 0，"
        "结果覆盖了第 0 页）",
    },
)

POSITION_NEGATIVE = Mistake(
    "position_negative",
    what={
        "en": "{argument} of row {position} is negative: {value}.",
        "zh": "第 {position} 行的 {argument} 是负数：{value}。",
    },
    fix={
        "en": "positions count from the request's first token; seq_lens must include the tokens that are appended.",
        "zh": "位置从请求的第一个 token 数起；seq_lens 要包含正在追加的 token。",
    },
    note={
        "en": "It writes into the pages of the request before; what the first request would do was not measured",
        "zh": "kernel 会写到前一个请求的页里；第一个请求会怎样没有测量过",
    },
)

POSITION_BEYOND_PAGES = Mistake(
    "position_beyond_pages",
    what={
        "en": "{argument} of row {position} is {value}; request {request} has {pages} page(s) of {page_size}.",
        "zh": "第 {position} 行的 {argument} 是 {value}，而请求 {request} 只有 {pages} 页，每页 {page_size} 个位置。",
    },
    fix={
        "en": "give the request its new pages first: kv_indptr, kv_indices and kv_last_page_len include the appended tokens.",
        "zh": "先给请求分配新的页：kv_indptr、kv_indices、kv_last_page_len 都要已经算上追加的 token。",
    },
    real={"rows": GARBAGE},
    note={
        "en": "It takes the next entry of kv_indices, a page of the next request, and overwrites its tokens",
        "zh": "kernel 会取 kv_indices 的下一项，也就是下一个请求的页，覆盖它的 token",
    },
)

POSITION_BEYOND_LENGTH = Mistake(
    "position_beyond_length",
    what={
        "en": "{argument} of row {position} is {value}; by kv_last_page_len request {request} has {length} tokens.",
        "zh": "第 {position} 行的 {argument} 是 {value}，而按 kv_last_page_len 请求 {request} 只有 {length} 个 token。",
    },
    fix={
        "en": "kv_last_page_len is that after the append: (length - 1) % page_size + 1 of the new length.",
        "zh": "kv_last_page_len 是追加之后的：按新长度算 (长度 - 1) % page_size + 1。",
    },
    real={"rows": HARMLESS},
    note={
        "en": "This kernel doesn't read kv_last_page_len, but attention does and won't see the token",
        "zh": "这个 kernel 不读 kv_last_page_len，但注意力会读，于是看不到这个 token",
    },
)

WRITTEN_TWICE = Mistake(
    "slot_written_twice",
    what={
        "en": "rows {first} and {position} go to the same place: page {page}, entry {entry}.",
        "zh": "第 {first} 行和第 {position} 行写到同一个位置：第 {page} 页的第 {entry} 项。",
    },
    fix={
        "en": "each new token has a place of its own; a page that requests share is not written to.",
        "zh": "每个新 token 都有自己的位置；几个请求共用的页不能写。",
    },
    real={"rows": GARBAGE},
    note={
        "en": "Which of the two remains is chance (measured once: the later row)",
        "zh": "最后留下哪一个全凭运气（测量过一次：是后面那一行）",
    },
)

PAGE_MISSING = Mistake(
    "page_out_of_range",
    what={
        "en": "{argument} holds page {value}, which row {row} goes to; the cache has {pages} pages.",
        "zh": "第 {row} 行要写到 {argument} 中的第 {value} 页，而缓存只有 {pages} 页。",
    },
    fix={"en": "pages are numbered 0..{last}.", "zh": "页号是 0..{last}。"},
    note={
        "en": "Nothing checks it: it writes outside the cache, close behind it without a word, far away with an illegal access",
        "zh": "没有检查：kernel 会写到缓存之外，紧挨在后面时悄无声息，离得远则是非法访问",
    },
)

KEY_SHAPE = Mistake(
    "shapes_differ",
    what={
        "en": "{argument} has shape {got}; needed is {expected}.",
        "zh": "{argument} 的形状是 {got}，需要的是 {expected}。",
    },
    fix={
        "en": "new rows are [tokens, kv_heads, head_dim] of the cache; see whether kv_layout is the cache's.",
        "zh": "新的行是 [token 数, kv_heads, head_dim]，与缓存一致；再看 kv_layout 是不是缓存的布局。",
    },
    real={"rows": raises(RuntimeError, "{argument}.size(1) == num_heads ({heads} vs. {kv_heads})", "run")},
)

KEY_BITS = Mistake(
    "dtypes_differ",
    what={
        "en": "{argument} is {got}; the cache is {expected}.",
        "zh": "{argument} 的类型是 {got}，而缓存是 {expected}。",
    },
    fix={"en": "bring it to the cache's type.", "zh": "转成缓存的类型。"},
    real={"rows": GARBAGE},
    note={
        "en": "Types are not compared: the bits are written as they are (measured with bfloat16 for a float16 cache)",
        "zh": "不会核对类型：比特原样写入（测量的是 bfloat16 写进 float16 的缓存）",
    },
)

ROWS_DIFFER = Mistake(
    "rows_differ",
    what={
        "en": "{argument} has {got} entries; append_key has {expected} rows.",
        "zh": "{argument} 有 {got} 项，而 append_key 有 {expected} 行。",
    },
    fix={"en": "one entry for each appended token.", "zh": "每个追加的 token 一项。"},
    real={"rows": raises(RuntimeError, "{argument}.size(0) == nnz ({got} vs. {expected})", "run")},
)

INDPTR_COUNT = Mistake(
    "kv_indptr_wrong_count",
    what={
        "en": "{argument} has {got} entries; kv_last_page_len describes {batch} requests, which needs {expected}.",
        "zh": "{argument} 有 {got} 项；kv_last_page_len 描述的是 {batch} 个请求，需要 {expected} 项。",
    },
    fix={
        "en": "one entry more than there are requests, the first of them 0.",
        "zh": "项数比请求数多 1，第一项是 0。",
    },
    real={"rows": raises(RuntimeError, "kv_indptr.size(0) == batch_size + 1 ({got} vs. {expected})", "run")},
)

STRIDES_DIFFER = Mistake(
    "kv_strides_differ",
    what={
        "en": "K and V of {argument} are laid out differently: strides {k} and {v}.",
        "zh": "{argument} 的 K 和 V 布局不同：步长 {k} 与 {v}。",
    },
    fix={
        "en": "make them views of one tensor, or two tensors of one layout.",
        "zh": "让它们是同一个张量的视图，或者布局相同的两个张量。",
    },
    real={"rows": raises(RuntimeError, "k/v strides must be identical", "run")},
)

LAYOUT_UNKNOWN = Mistake(
    "bad_option",
    what={
        "en": "{argument} is {value!r}; it is NHD or HND.",
        "zh": "{argument} 是 {value!r}，应当是 NHD 或 HND。",
    },
    fix={"en": "name one of the two.", "zh": "二者选一。"},
    real={"rows": raises(KeyError, "Invalid kv_layout {value}", "run")},
)

NOT_INTEGERS = Mistake(
    "not_integers",
    what={
        "en": "{argument} is {dtype}; it holds integers.",
        "zh": "{argument} 的类型是 {dtype}，应当是整数。",
    },
    fix={"en": "create it as int32.", "zh": "用 int32 创建。"},
    real={"rows": GARBAGE},
    note={
        "en": "It is cut to int32 without a word",
        "zh": "会被直接截成 int32，没有任何提示",
    },
)

APPEND_INDPTR = Mistake(
    "append_indptr_wrong",
    what={
        "en": "{argument} must start at 0 and never decrease; entry {position} is {value}.",
        "zh": "{argument} 从 0 开始，不会变小；第 {position} 项是 {value}。",
    },
    fix={
        "en": "it is the running sum of the appended tokens, with a 0 first.",
        "zh": "它是各请求追加的 token 数的累加和，第一项是 0。",
    },
)

BEYOND_INT32 = Mistake(
    "beyond_int32",
    what={
        "en": "{argument} holds {value}, which int32 has no room for.",
        "zh": "{argument} 里有 {value}，超出了 int32 的范围。",
    },
    fix={
        "en": "see where the number comes from: pages, requests and positions are far smaller.",
        "zh": "查一查这个数是怎么来的：页号、请求编号和位置都远小于它。",
    },
    note={
        "en": "It is brought to int32 first, which leaves its lower half",
        "zh": "会先转成 int32，只留下低 32 位",
    },
)

SEQ_LENS_COUNT = Mistake(
    "seq_lens_wrong_count",
    what={
        "en": "{argument} has {got} entries; append_indptr describes {expected} requests.",
        "zh": "{argument} 有 {got} 项，而 append_indptr 描述的是 {expected} 个请求。",
    },
    fix={"en": "one length for each request.", "zh": "每个请求一个长度。"},
    note={
        "en": "Missing entries are read from behind the tensor (measured with one too few)",
        "zh": "缺的项会读到张量末尾之后（测量的是少一项）",
    },
)

SEQ_LENS_TOO_SHORT = Mistake(
    "seq_lens_without_appended",
    what={
        "en": "{argument} of request {position} is {value}, but {appended} tokens are appended to it.",
        "zh": "请求 {position} 的 {argument} 是 {value}，却要追加 {appended} 个 token。",
    },
    fix={
        "en": "seq_lens are the lengths after the append.",
        "zh": "seq_lens 是追加之后的长度。",
    },
    real={"rows": GARBAGE},
    note={"en": "It writes negative positions", "zh": "会写出负的位置"},
)

NNZ_TOO_SMALL = Mistake(
    "nnz_too_small",
    what={
        "en": "{argument} is {value}; append_indptr ends at {needed}.",
        "zh": "{argument} 是 {value}，而 append_indptr 的最后一项是 {needed}。",
    },
    fix={
        "en": "nnz is at least append_indptr[-1]; further rows stay -1.",
        "zh": "nnz 至少是 append_indptr[-1]；多出来的行保持 -1。",
    },
    real={"rows": GARBAGE},
    note={"en": "It writes behind its outputs", "zh": "会写到输出张量之后"},
)

OUTPUT_MISMATCH = Mistake(
    "out_mismatch",
    what={
        "en": "{argument}: the {property} is {got}, needed is {expected}.",
        "zh": "{argument}：{property_zh}是 {got}，需要的是 {expected}。",
    },
    fix={"en": "an int32 tensor with nnz entries.", "zh": "长度为 nnz 的 int32 张量。"},
    real={
        "rows": raises(ValueError, "Invalid {property} of {argument}: expected {expected}, got {got}", "run")
    },
)

EMPTY_REQUEST_LENGTH = Mistake(
    "last_page_len_of_empty_request",
    what={
        "en": "request {position} has no pages but {argument} {value}: the formula gives it length {value}.",
        "zh": "请求 {position} 没有页，{argument} 却是 {value}：按公式它的长度就成了 {value}。",
    },
    fix={"en": "write 0 for a request without pages.", "zh": "没有页的请求写 0。"},
    note={
        "en": "The attention kernels take 0 for a request without pages, this formula takes last_page_len",
        "zh": "没有页的请求，注意力 kernel 的长度取 0，这个公式取 last_page_len",
    },
)
