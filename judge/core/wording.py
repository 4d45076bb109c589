"""Every sentence the judge says, in Chinese and in English. A code names a sentence, its parameters fill it; web page
and terminal call `say` and show the plain text (escaping it is the caller's part)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from judge.core.status import Status
from judge.core.values import float_text
from judge.core.verdict import Message, Mismatch

LANGUAGES = ("zh", "en")

STATUSES: dict[Status, dict[str, str]] = {
    Status.QUEUED: {"zh": "排队中", "en": "queued"},
    Status.RUNNING: {"zh": "判题中", "en": "running"},
    Status.ACCEPTED: {"zh": "通过", "en": "accepted"},
    Status.WRONG_ANSWER: {"zh": "答案错误", "en": "wrong answer"},
    Status.RUNTIME_ERROR: {"zh": "运行时错误", "en": "runtime error"},
    Status.COMPILE_ERROR: {"zh": "编译错误", "en": "compile error"},
    Status.TIME_LIMIT: {"zh": "超出时间限制", "en": "time limit"},
    Status.MEMORY_LIMIT: {"zh": "超出内存限制", "en": "memory limit"},
    Status.OUTPUT_LIMIT: {"zh": "超出输出限制", "en": "output limit"},
    Status.SYSTEM_ERROR: {"zh": "判题系统出错", "en": "system error"},
    Status.CANCELLED: {"zh": "已取消", "en": "cancelled"},
    Status.NOT_RUN: {"zh": "未运行", "en": "not run"},
}

# Sentences with a caret line use {pointer}, which `say` makes from the parameters text and column.
SENTENCES: dict[str, dict[str, str]] = {
    # the submission as a text
    "source_empty": {
        "zh": "提交是空的。请写出题目要求的函数。",
        "en": "The submission is empty. Write the function that the problem asks for.",
    },
    "source_too_large": {
        "zh": "提交有 {size} 字节，上限是 {limit} 字节。",
        "en": "The submission has {size} bytes; the limit is {limit} bytes.",
    },
    "source_not_utf8": {
        "zh": "第 {line} 行有不是 UTF-8 的字节 {byte}。请把文件存成 UTF-8。",
        "en": "Line {line} has a byte that is not UTF-8: {byte}. Save the file as UTF-8.",
    },
    "source_nul": {
        "zh": "第 {line} 行有 NUL 字符，Python 不接受。",
        "en": "Line {line} contains a NUL character, which Python refuses.",
    },
    "syntax_error": {
        "zh": "第 {line} 行有语法错误：{reason}{pointer}",
        "en": "Syntax error in line {line}: {reason}{pointer}",
    },
    "missing_entry": {
        "zh": "没有找到函数 {entry}。提交里要有 def {signature}。",
        "en": "There is no function {entry}. The submission needs def {signature}.",
    },
    "entry_not_callable": {
        "zh": "{entry} 是 {type}，不是函数。",
        "en": "{entry} is a {type}, not a function.",
    },
    "wrong_signature": {
        "zh": "{entry}{got} 不能用 {count} 个位置参数调用；题目给的是 {signature}。",
        "en": "{entry}{got} cannot be called with {count} positional arguments; the problem gives {signature}.",
    },
    # while it runs
    "exception": {
        "zh": "第 {line} 行抛出了 {type}{detail}",
        "en": "{type} raised in line {line}{detail}",
    },
    "exception_no_line": {"zh": "抛出了 {type}{detail}", "en": "{type} raised{detail}"},
    "exception_on_load": {
        "zh": "还没有调用函数，执行提交本身时第 {line} 行就抛出了 {type}{detail}",
        "en": "{type} raised in line {line} while the submission itself was executed, before any case{detail}",
    },
    "unsupported_type": {
        "zh": "返回值{field}是 {type}，判题只接受整数、浮点数、布尔、字符串、列表、元组、字典和张量。",
        "en": "The returned value{field} is {type}; the judge takes ints, floats, bools, strings, lists, tuples, "
        "dicts and tensors.",
    },
    "cpu_limit": {
        "zh": "一个用例用了 {used_ms} 毫秒 CPU 时间，上限是 {limit_ms} 毫秒。",
        "en": "One case used {used_ms} ms of CPU time; the limit is {limit_ms} ms.",
    },
    "total_cpu_limit": {
        "zh": "全部用例共用了 {used_ms} 毫秒 CPU 时间，上限是 {limit_ms} 毫秒。",
        "en": "All cases together used {used_ms} ms of CPU time; the limit is {limit_ms} ms.",
    },
    "wall_limit": {
        "zh": "等了 {limit_ms} 毫秒仍没有结果（CPU 时间只用了 {used_ms} 毫秒）：程序可能在睡眠或等待。",
        "en": "No answer within {limit_ms} ms (only {used_ms} ms of CPU time used): the program sleeps or waits.",
    },
    "memory_limit": {
        "zh": "用到的内存超过了 {limit_mb} MB 的上限。",
        "en": "It needed more memory than the limit of {limit_mb} MB.",
    },
    "device_memory_limit": {
        "zh": "用到的显存超过了 {limit_mb} MB 的上限。",
        "en": "It needed more GPU memory than the limit of {limit_mb} MB.",
    },
    "output_limit": {
        "zh": "打印的内容超过了 {limit_kb} KB 的上限。",
        "en": "It printed more than the limit of {limit_kb} KB.",
    },
    "too_many_calls": {
        "zh": "一个用例里的调用超过了 {limit} 次，或者调用带的数据太多、占用的时间太长。",
        "en": "More than {limit} calls in one case, or calls that carry too much or take too long.",
    },
    "reply_too_large": {
        "zh": "返回值有 {size} 字节，上限是 {limit} 字节。",
        "en": "The returned value has {size} bytes; the limit is {limit} bytes.",
    },
    "reply_over_limit": {
        "zh": "返回值超过了 {limit} 字节的上限。",
        "en": "The returned value is over the limit of {limit} bytes.",
    },
    "ended_without_result": {
        "zh": "程序没有给出结果就退出了。",
        "en": "The program ended without giving a result.",
    },
    "ended_early": {
        "zh": "程序没有给出结果就退出了（退出码 {exit}）。",
        "en": "The program ended without giving a result (exit status {exit}).",
    },
    "killed_by_signal": {
        "zh": "程序被信号 {signal} 终止了。",
        "en": "The program was ended by signal {signal}.",
    },
    "unsolicited_bytes": {
        "zh": "程序在没有被调用时往判题通道里写了数据。",
        "en": "The program wrote to the judge's channel without having been called.",
    },
    "broken_reply": {
        "zh": "判题通道里的数据不是一个完整的返回值。",
        "en": "What came through the judge's channel is no complete result.",
    },
    "check_failed": {
        "zh": "返回值无法检查：检查它时出了错。",
        "en": "The returned value could not be checked: checking it raised an error.",
    },
    "system_error": {
        "zh": "判题系统自己出错了，这次提交没有被判定。请再交一次；如果还是这样，请告诉老师。",
        "en": "The judge itself failed; this submission was not judged. Submit again, and tell the staff if it stays.",
    },
    "worker_lost": {
        "zh": "判题进程在这次提交上中断了 {crashes} 次，不再重试。请检查它是否占用过多资源，然后再交一次。",
        "en": "The judging process was lost {crashes} times on this submission, so it is not tried again. Check "
        "whether it takes too many resources, then submit again.",
    },
    # mismatches
    "missing": {"zh": "缺少 {field}", "en": "{field} is missing"},
    "unexpected": {
        "zh": "{field} 里多出了 {names}",
        "en": "{field}: not expected: {names}",
    },
    "type": {"zh": "{field}：应为 {expected}，得到 {got}", "en": "{field}: expected {expected}, got {got}"},
    "length": {
        "zh": "{field}：长度应为 {expected}，得到 {got}",
        "en": "{field}: expected length {expected}, got {got}",
    },
    "dtype": {
        "zh": "{field}：dtype 应为 {expected}，得到 {got}{rest}",
        "en": "{field}: expected dtype {expected}, got {got}{rest}",
    },
    "shape": {
        "zh": "{field}：形状应为 {expected}，得到 {got}",
        "en": "{field}: expected shape {expected}, got {got}",
    },
    "value": {
        "zh": "{field}：应为 {expected}，得到 {got}{rest}",
        "en": "{field}: expected {expected}, got {got}{rest}",
    },
    "output_count": {
        "zh": "应返回 {expected} 个值（{names}），得到 {got}",
        "en": "expected {expected} values ({names}), got {got}",
    },
    "kernel_error": {
        "zh": "{field}：拿它去 plan 和 run，被拒绝了：{text}",
        "en": "{field}: planning and running with it is refused: {text}",
    },
    "attention": {
        "zh": "用这些元数据算出的注意力和参考后端的不一样",
        "en": "attention computed with this metadata differs from the reference backend's",
    },
}

# The same mismatches where nothing but the field may be told.
HIDDEN_SENTENCES: dict[str, dict[str, str]] = {
    "missing": {"zh": "{field} 缺少", "en": "{field}: missing"},
    "unexpected": {"zh": "{field} 里有多余的内容", "en": "{field}: something was not expected"},
    "type": {"zh": "{field} 的类型不对", "en": "{field}: wrong type"},
    "length": {"zh": "{field} 的长度不对", "en": "{field}: wrong length"},
    "dtype": {"zh": "{field} 的 dtype 不对", "en": "{field}: wrong dtype"},
    "shape": {"zh": "{field} 的形状不对", "en": "{field}: wrong shape"},
    "value": {"zh": "{field} 的值不对", "en": "{field}: wrong values"},
    "output_count": {"zh": "返回值的个数不对", "en": "wrong number of returned values"},
    "unsupported_type": {
        "zh": "返回值里有判题不接受的类型。",
        "en": "The returned value has a type that the judge does not take.",
    },
    "kernel_error": {
        "zh": "{field} 不能用来 plan 和 run",
        "en": "{field}: cannot be planned and run with",
    },
}

DIAGNOSES: dict[str, dict[str, str]] = {
    "mistake": {
        "zh": "你的输出和下面这种程序给出的完全一样（{agreed}/{failed} 个没通过的用例由它解释）。{text}",
        "en": "Your output is exactly what this program gives ({agreed} of {failed} failing cases): {text}",
    },
    "mistake_in": {
        "zh": "你的 {fields} 和下面这种程序给出的完全一样（{agreed}/{failed} 个没通过的用例）。{text}",
        "en": "Your {fields} is exactly what this program gives ({agreed} of {failed} failing cases): {text}",
    },
    "tie": {
        "zh": "你的输出符合下面几种错误中的每一种，现有用例分不出是哪一种：{text}",
        "en": "Your output fits each of these mistakes; the cases at hand cannot tell which: {text}",
    },
    "partial": {
        "zh": "{failed} 个没通过的用例里，有 {agreed} 个的输出和下面这种程序的一样，其余的还有别的问题。{text}",
        "en": "On {agreed} of {failed} failing cases your output is what this program gives: {text} In the others "
        "something else is wrong.",
    },
    "all_and_more": {
        "zh": "没通过的用例里（{agreed}/{failed}），你的输出都和下面这种程序的一样；但有的用例它过不了，你通过了，"
        "所以不完全是它。{text}",
        "en": "On all {agreed} of {failed} failing cases your output is what this program gives, though you pass some "
        "that it fails, so that is not quite it: {text}",
    },
    "unexplained": {
        "zh": "{fields} 里还有上面没有解释的错误。",
        "en": "Something more is wrong in {fields} that the above does not explain.",
    },
    "invariant": {"zh": "{text}", "en": "{text}"},
    "common": {
        "zh": "没通过的用例正好是这样的用例：{text}。",
        "en": "It fails exactly when {text}.",
    },
}


def say_status(status: Status | str, lang: str) -> str:
    """The word for a status."""
    return STATUSES[Status(status)][lang]


def say(message: Message | Mapping[str, Any], lang: str, *, hidden: bool = False) -> str:
    """The sentence for a message {code, params} or a mismatch {code, field, params}, in `lang`.

    `hidden` chooses the form that names no values. Unknown codes are a fault of ours: KeyError.
    """
    if not isinstance(message, Mapping):
        message = message.to_json()
    return _fill(message["code"], dict(message.get("params") or {}), message.get("field"), lang, hidden)


def say_mismatch(mismatch: Mismatch, lang: str, *, hidden: bool = False) -> str:
    """The sentence for a mismatch."""
    return _fill(mismatch.code, dict(mismatch.params), mismatch.field, lang, hidden)


def say_diagnosis(entry: Mapping[str, Any], lang: str) -> str:
    """The sentence for an entry of a verdict's diagnosis."""
    text = entry.get("text") or {}
    params = {**(entry.get("params") or {}), "text": text.get(lang, "")}
    params["fields"] = ", ".join(entry.get("fields") or [])
    kind = entry["kind"]
    if kind == "mistake" and params.get("part"):
        kind = "mistake_in"
    elif kind == "partial" and params["agreed"] == params["failed"]:
        kind = "all_and_more"
    return DIAGNOSES[kind][lang].format(**params)


def _fill(code: str, params: dict[str, Any], field: str | None, lang: str, hidden: bool) -> str:
    if code == "mismatches":  # a case with several: one sentence each
        parts = [_fill(m["code"], dict(m["params"]), m["field"], lang, hidden) for m in params["list"]]
        return ("；" if lang == "zh" else "; ").join(parts)
    hidden = hidden or (code in HIDDEN_SENTENCES and not params)
    sentence = (HIDDEN_SENTENCES if hidden and code in HIDDEN_SENTENCES else SENTENCES)[code][lang]
    values = {**params, "field": field if field is not None else params.get("field", "")}
    if code == "value" and not hidden:
        values["rest"] = _rest_of_value(params, lang)
        for key in ("expected", "got"):  # a string with its quotes: it may be empty, or begin with a space
            if isinstance(values.get(key), str) and values[key] not in ("nan", "inf", "-inf"):
                values[key] = repr(values[key])
        pair = [values.get(k) for k in ("expected", "got")]
        if len({_plain(v) for v in pair}) == 1:  # they differ beyond the digits that are usually shown
            values.update(expected=repr(pair[0]), got=repr(pair[1]))
    elif code in ("type", "output_count") and not hidden and values["got"] == "NoneType":
        values["got"] = "None" + _is_there_a_return(values["field"], lang)
    elif code == "dtype" and not hidden:
        values["rest"] = _rest_of_dtype(params, lang)
    elif code.startswith("exception"):
        values["detail"] = _detail(params, lang)
    elif code == "syntax_error":
        values["pointer"] = _pointer(params)
    elif code == "kernel_error" and not hidden:
        values["text"] = (params.get("text") or {}).get(lang, params.get("error", ""))
    elif code == "unsupported_type" and values["field"]:
        values["field"] = f" {values['field']} "
    return sentence.format(**{k: _plain(v) for k, v in values.items()})


def _plain(value: Any) -> str:
    """A parameter as text. A shape is written as Python writes a tuple."""
    if isinstance(value, list):
        return "(" + ", ".join(map(str, value)) + (",)" if len(value) == 1 else ")")
    return float_text(value) if isinstance(value, float) else str(value)


def _rest_of_value(params: Mapping[str, Any], lang: str) -> str:
    if "of" not in params:
        return ""
    facts = {"zh": [], "en": []}  # type: dict[str, list[str]]
    if params["wrong"] > 1:
        facts["zh"].append(f"{params['of']} 个里有 {params['wrong']} 个不对")
        facts["en"].append(f"{params['wrong']} of {params['of']} are wrong")
    shape = _plain(params["shape"])
    if params.get("dtype"):
        facts["zh"].append(f"形状 {shape} 和 dtype {params['dtype']} 是对的")
        facts["en"].append(f"shape {shape} and dtype {params['dtype']} are right")
    else:
        facts["zh"].append(f"形状 {shape} 是对的")
        facts["en"].append(f"shape {shape} is right")
    return f"（{'，'.join(facts['zh'])}）" if lang == "zh" else f" ({'; '.join(facts['en'])})"


def _is_there_a_return(field: str, lang: str) -> str:
    """A whole result that is None is mostly a function without `return`; an element that is None is not."""
    if "[" in field or "." in field:
        return ""
    return "（函数没有 return 吗？）" if lang == "zh" else " (does the function return anything?)"


def _rest_of_dtype(params: Mapping[str, Any], lang: str) -> str:
    if not params.get("rest_right"):
        return ""
    shape = _plain(params["shape"])
    return f"（形状 {shape} 和值是对的）" if lang == "zh" else f" (shape {shape} and values are right)"


def _detail(params: Mapping[str, Any], lang: str) -> str:
    text = params.get("text")
    if not text:
        return "。" if lang == "zh" else "."
    return ("：" if lang == "zh" else ": ") + str(text)


def _pointer(params: Mapping[str, Any]) -> str:
    """The offending line with a caret under the column, on lines of their own."""
    text, column = params.get("text"), params.get("column")
    if not text:
        return ""
    shown = text.rstrip("\n").replace("\t", " ")
    left = len(shown) - len(shown.lstrip())
    before = shown[left : max(left, (column or 1) - 1)]
    # A Chinese character takes two columns: so does the ideographic space under it.
    blank = "".join("\u3000" if unicodedata.east_asian_width(c) in "WF" else " " for c in before)
    return f"\n    {shown.strip()}\n    {blank}^"
