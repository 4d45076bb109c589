"""Mistakes in sampling: what isn't a distribution, filters out of range, parameters of another batch.

Outcomes were measured on an H200 with flashinfer 0.7.2.post1, 4,000 draws from a row of 6 tokens; messages are the
library's (`sampling.py`, `sampling_utils.h`). What nobody measured has no outcome, and a note from `sampling.cuh`.
"""

from __future__ import annotations

from fake_kernels.findings import Mistake
from fake_kernels.outcomes import GARBAGE, IGNORED, raises

NO_VOCABULARY = Mistake(
    "shapes_differ",
    what={
        "en": "{argument} has shape {shape}; it is [rows, vocabulary], with at least one token.",
        "zh": "{argument} 的形状是 {shape}，应当是 [行数, 词表大小]，词表不为空。",
    },
    fix={"en": "one row for each request.", "zh": "每个请求一行。"},
)

UNSUPPORTED_DTYPE = Mistake(
    "dtypes_differ",
    what={
        "en": "{argument} is {dtype}; it must be float32, float16 or bfloat16.",
        "zh": "{argument} 的类型是 {dtype}，应当是 float32、float16 或 bfloat16。",
    },
    fix={"en": ".float().", "zh": ".float()。"},
    note={
        "en": "It is brought to float32 and taken as it is: rows of ones of int32 gave token 0 each time",
        "zh": "会先转成 float32，数值原样使用：int32 的全 1 的行每次都抽到 token 0",
    },
)

DTYPE_ASSERTED = Mistake(
    UNSUPPORTED_DTYPE.code,
    what=UNSUPPORTED_DTYPE.what,
    fix=UNSUPPORTED_DTYPE.fix,
    real={
        "rows": raises(
            AssertionError, "Unsupported dtype {dtype}, expected float32, float16, or bfloat16", "run"
        )
    },
)

NAN = Mistake(
    "row_has_nan",
    what={"en": "row {position} of {argument} holds NaN.", "zh": "{argument} 的第 {position} 行有 NaN。"},
    fix={
        "en": "find where it comes from; check_nan=True makes the library raise.",
        "zh": "找出 NaN 的来源；check_nan=True 时库会报错。",
    },
    note={
        "en": "Every comparison with NaN is false: the token is never drawn, and its share is missing from the sum (measured "
        "with sampling_from_probs)",
        "zh": "与 NaN 的比较都是假：这个 token 永远抽不到，累加和里也少了它那一份（测量的是 sampling_from_probs）",
    },
)

NAN_CHECKED = Mistake(
    NAN.code,
    what=NAN.what,
    fix=NAN.fix,
    real={"rows": raises(ValueError, "Input {told} contains NaN.", "run")},
)

NEGATIVE = Mistake(
    "row_has_negative",
    what={
        "en": "row {position} of {argument} holds {value}: probabilities are not negative.",
        "zh": "{argument} 的第 {position} 行里有 {value}：概率不会是负数。",
    },
    fix={
        "en": "these may be logits: apply softmax, or call the ..._from_logits function.",
        "zh": "这多半是 logits：先 softmax，或者用 ..._from_logits。",
    },
    note={
        "en": "Negative entries are never drawn and left out of the sum; of [0.5, -0.5, 0.5, 0.5] the last is never drawn "
        "either, because the others make 1 (measured, with and without top-k)",
        "zh": "负的项永远抽不到，也不计入累加和；[0.5, -0.5, 0.5, 0.5] 里最后一项同样抽不到，因为前面的已经凑满 1（测量过，"
        "有没有 top-k 都一样）",
    },
)

NOT_NORMALISED = Mistake(
    "row_not_normalised",
    what={
        "en": "row {position} of {argument} sums to {value}, not to 1.",
        "zh": "{argument} 的第 {position} 行的和是 {value}，不是 1。",
    },
    fix={
        "en": "divide by the sum, or use the renorm functions after filtering.",
        "zh": "除以它的和；过滤之后用 renorm 函数。",
    },
    note={
        "en": "It compares with a number in (0, 1]: what is missing to 1 goes to the last token that may be drawn, what is more "
        "is cut off (measured with half and twice the probabilities)",
        "zh": "它与 (0, 1] 里的一个数比较：不足 1 的部分全归最后一个可抽的 token，超出 1 的部分被截掉（测量的是一半和两倍的"
        "概率）",
    },
)

EMPTY_ROW = Mistake(
    "row_is_empty",
    what={
        "en": "row {position} of {argument} has no token to choose from.",
        "zh": "{argument} 的第 {position} 行没有可选的 token。",
    },
    fix={
        "en": "don't mask everything; return_valid=True tells such rows.",
        "zh": "不要把所有 token 都屏蔽；return_valid=True 会指出这样的行。",
    },
    real={"rows": GARBAGE},
    note={
        "en": "A row of zeros gives token 0; logits that are all -inf were not measured",
        "zh": "全 0 的行返回 token 0；全是 -inf 的 logits 没有测量过",
    },
)

TEMPERATURE_VALUE = Mistake(
    "temperature_not_positive",
    what={
        "en": "{argument} of row {position} is {value}.",
        "zh": "第 {position} 行的 {argument} 是 {value}。",
    },
    fix={
        "en": "temperature is above 0; for greedy decoding take the argmax.",
        "zh": "温度大于 0；贪心解码直接取 argmax。",
    },
    note={
        "en": "0 is taken as a factor 0 for the logits: every token becomes equally likely, the opposite of greedy. A negative "
        "one turns the order round",
        "zh": "0 会让 logits 全部乘 0：所有 token 概率相同，与贪心正好相反。负数则把大小顺序颠倒",
    },
)

TEMPERATURE_TENSOR = Mistake(
    "temperature_wrong",
    what={"en": "{argument}: {message}.", "zh": "{argument}：{message}。"},
    fix={
        "en": "a number, or a float tensor with one entry for each row of logits.",
        "zh": "一个数，或者浮点张量，logits 的每一行一项。",
    },
    real={"rows": raises(ValueError, "{message}", "run")},
)

TEMPERATURE_KIND = Mistake(
    "temperature_wrong",
    what=TEMPERATURE_TENSOR.what,
    fix=TEMPERATURE_TENSOR.fix,
    real={"rows": raises(TypeError, "{message}", "run")},
)

PARAMETER_SHAPE = Mistake(
    "parameter_shape",
    what={
        "en": "{argument} has shape {shape}; it is a number or has one entry for each of the {rows} rows.",
        "zh": "{argument} 的形状是 {shape}，应当是一个数，或者 {rows} 行每行一项。",
    },
    fix={
        "en": "with indices=, entries belong to rows of the distribution, not to outputs.",
        "zh": "有 indices= 时，每一项属于分布的一行，而不是一个输出。",
    },
    real={"rows": raises(ValueError, "{message}", "run")},
)

PARAMETER_RANGE = Mistake(
    "parameter_out_of_range",
    what={
        "en": "{argument} of row {position} is {value}; it must be {range}.",
        "zh": "第 {position} 行的 {argument} 是 {value}，应当{range_zh}。",
    },
    fix={
        "en": "top_k = vocabulary, top_p = 1 and min_p = 0 switch a filter off.",
        "zh": "top_k 取词表大小、top_p 取 1、min_p 取 0 就等于不过滤。",
    },
    note={
        "en": "Nothing checks it. A top_k below 0, a top_p above 1 and a min_p below 0 switch the filter off. A top_k of 0, a "
        "top_p of 0 or less and a min_p above 1 keep no token: token 0 is returned, whatever its probability; top_k_renorm_probs "
        "gives zeros and top_k_mask_logits -inf then, and top_p_renorm_probs keeps the largest",
        "zh": "没有检查。top_k 小于 0、top_p 大于 1、min_p 小于 0 等于不过滤。top_k 为 0、top_p 不大于 0、min_p 大于 1 时一个 "
        "token 也不留：不论概率是多少都返回 token 0；此时 top_k_renorm_probs 给出全 0，top_k_mask_logits 给出全 -inf，"
        "top_p_renorm_probs 则留下最大的一个",
    },
)

PARAMETER_KIND = Mistake(
    "parameter_type",
    what={
        "en": "{argument} is {kind}; it must be {wanted}.",
        "zh": "{argument} 的类型是 {kind}，应当是{wanted_zh}。",
    },
    fix={
        "en": "top_k counts tokens, top_p and min_p are shares.",
        "zh": "top_k 是 token 数，top_p 和 min_p 是比例。",
    },
    note={
        "en": "Tensors are converted: whole numbers of another type are right, fractions of a top_k are cut off",
        "zh": "张量会被转换类型：别的类型的整数是对的，top_k 的小数部分会被截掉",
    },
)

INDICES_WRONG = Mistake(
    "indices_wrong",
    what={
        "en": "{argument} must be contiguous int32 or int64 [outputs]; it is {dtype} {shape}.",
        "zh": "{argument} 应当是连续的 int32 或 int64、一维；现在是 {dtype}、形状 {shape}。",
    },
    fix={
        "en": "indices[i] is the row that output i is drawn from.",
        "zh": "indices[i] 是第 i 个输出所用的行。",
    },
    real={
        "rows": raises(
            RuntimeError,
            "Inconsistency of Tensor type: maybe_indices must be dl_int32 or dl_int64",
            "run",
        )
    },
)

INDEX_OUT_OF_RANGE = Mistake(
    "index_out_of_range",
    what={
        "en": "{argument}[{position}] is {value}; there are {rows} rows.",
        "zh": "{argument}[{position}] 是 {value}，而分布只有 {rows} 行。",
    },
    fix={"en": "rows are numbered from 0.", "zh": "行从 0 数起。"},
    note={
        "en": "It draws from what lies there: zeros close behind the tensor gave token 0, far away the access is illegal",
        "zh": "会从那里的内容里抽取：紧挨在张量后面是 0，得到 token 0；离得远则是非法访问",
    },
)

SEED_WRONG = Mistake(
    "seed_wrong",
    what={"en": "{argument}: {message}.", "zh": "{argument}：{message}。"},
    fix={
        "en": "two integers, or two int64 tensors with 1 entry or one for each output; change them between calls.",
        "zh": "两个整数，或者两个 int64 张量，一项或每个输出一项；每次调用都要换。",
    },
    real={"rows": raises(ValueError, "{message}", "run")},
)

PARAMETER_BINDING = raises(TypeError, "Mismatched type on argument", "run")
"""A number of the wrong kind: the binding takes none."""

SEED_KIND = Mistake(
    "seed_wrong",
    what={
        "en": "{argument} is a {kind}; it must be an integer or a tensor.",
        "zh": "{argument} 的类型是 {kind}，应当是整数或张量。",
    },
    fix=SEED_WRONG.fix,
)

GENERATOR_KIND = Mistake(
    "generator_type",
    what={
        "en": "{argument} is a {kind}; it must be a torch.Generator.",
        "zh": "{argument} 的类型是 {kind}，应当是 torch.Generator。",
    },
    fix={
        "en": "torch.Generator(device).manual_seed(number), or pass the number as seed= with an offset=.",
        "zh": "torch.Generator(device).manual_seed(数)，或者把数作为 seed= 与 offset= 一起传。",
    },
)

SEED_ALONE = Mistake(
    "seed_alone",
    what={
        "en": "{argument} is given without the other of seed and offset, so it would be ignored.",
        "zh": "只传了 {argument}；seed 和 offset 缺一个时会被忽略。",
    },
    fix={"en": "pass both, or neither.", "zh": "两个都传，或者都不传。"},
    real={"rows": IGNORED},
    note={
        "en": "Both then come from the generator (sampling.py, get_seed_and_offset)",
        "zh": "两者都改从 generator 取（sampling.py，get_seed_and_offset）",
    },
)

ORDER_UNKNOWN = Mistake(
    "bad_option",
    what={
        "en": "{argument} is {value}; it is top_k_first or joint.",
        "zh": "{argument} 是 {value}，应当是 top_k_first 或 joint。",
    },
    fix={"en": "name one of the two.", "zh": "二者选一。"},
    real={"rows": raises(ValueError, "Invalid filter_apply_order: {value}", "run")},
)
