"""What a real kernel did with a mistake: the vocabulary in which the measurements are written down.

A mistake maps each kernel path to one `Outcome`. Strict mode turns it into the sentence of an error,
faithful mode acts it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Literal

from fake_kernels.errors import Text

Path = Literal["dec", "tc", "fa2", "fa3", "persistent", "sgl", "rows"]
"""The kernels told apart: CUDA-core decode, tensor-core decode, prefill on fa2 and fa3, BatchAttention
(all flashinfer), FlashAttention 3 of sgl_kernel, and the operators that work row by row."""

PATHS: tuple[Path, ...] = ("dec", "tc", "fa2", "fa3", "persistent", "sgl", "rows")

PATH_NAMES: dict[str, Text] = {
    "dec": {"en": "CUDA-core decode", "zh": "CUDA core 的 decode"},
    "tc": {"en": "tensor-core decode", "zh": "Tensor Core 的 decode"},
    "fa2": {"en": "prefill fa2", "zh": "prefill（fa2）"},
    "fa3": {"en": "prefill fa3", "zh": "prefill（fa3）"},
    "persistent": {"en": "BatchAttention", "zh": "BatchAttention"},
    "sgl": {"en": "FlashAttention 3", "zh": "FlashAttention 3"},
    "rows": {"en": "this operator", "zh": "这个算子"},
}

Kind = Literal[
    "garbage", "nan", "raises", "illegal", "dies", "hangs", "harmless", "ignored", "build_fails", "unmeasured"
]
"""illegal: a CUDA error takes the context along. dies: a signal ends the process. hangs: the call was not back when it was
ended after 45 s or more. harmless: the result is right. ignored: the option plays no part and
was wanted."""

ILLEGAL_ACCESS = "an illegal memory access was encountered"
"""What CUDA says of most kernels that lose the context."""


@dataclass(frozen=True)
class Outcome:
    """One measured behaviour. `raised` and `message` (a format string over the mistake's params) are
    for kind "raises"; `during` is the call in which it shows; `error` is CUDA's, for kind "illegal", or the signal's,
    for kind "dies"."""

    kind: Kind
    raised: type[Exception] | None = None
    message: str = ""
    during: Literal["plan", "run"] = "run"
    error: str = ""

    def can_tell(self, params: Mapping[str, object]) -> bool:
        """Whether `params` has everything that the message needs."""
        return all(name is None or name in params for _, name, _, _ in Formatter().parse(self.message))

    def describe(self, lang: str, params: Mapping[str, object]) -> str:
        """One clause: what the kernel does."""
        if self.kind == "raises" and self.raised is not None:
            message = self.message.format(**params)
            verb, colon = ("raises", ": ") if lang == "en" else ("抛出", "：")
            told = f"{verb} {self.raised.__name__}"
            return f"{told}{colon}{message}" if message else told
        return _SENTENCES[self.kind][lang].format(error=self.error)


_SENTENCES: dict[str, Text] = {
    "garbage": {
        "en": "accepts it without an error and returns wrong numbers",
        "zh": "不报错，照常返回，但结果是错的",
    },
    "nan": {"en": "accepts it without an error and returns NaN", "zh": "不报错，返回 NaN"},
    "illegal": {
        "en": "fails with CUDA error: {error}, and the CUDA context is lost",
        "zh": "以 CUDA error: {error} 失败，整个 CUDA 上下文随之失效",
    },
    "dies": {"en": "ends the process: {error}", "zh": "使整个进程终止：{error}"},
    "hangs": {"en": "does not come back", "zh": "不再返回"},
    "harmless": {
        "en": "accepts it, and the result happens to be right",
        "zh": "照常返回，结果碰巧是对的",
    },
    "ignored": {
        "en": "accepts it without an error and computes as if it had not been given",
        "zh": "不报错，照常返回，但当作没有传这个参数来计算",
    },
    "build_fails": {
        "en": "starts a JIT build for that type, which fails",
        "zh": "为这个类型启动 JIT 编译，编译失败",
    },
    "unmeasured": {"en": "was not measured", "zh": "没有测量过"},
}

GARBAGE = Outcome("garbage")
NAN = Outcome("nan")
ILLEGAL = Outcome("illegal", error=ILLEGAL_ACCESS)
MISALIGNED = Outcome("illegal", error="misaligned address")
DIVISION_BY_ZERO = Outcome("dies", error="SIGFPE")
HANGS = Outcome("hangs")
HARMLESS = Outcome("harmless")
IGNORED = Outcome("ignored")
BUILD_FAILS = Outcome("build_fails", during="plan")
UNMEASURED = Outcome("unmeasured")


def verbatim(message: str) -> str:
    """A message that is no format string, as one: braces in it stand for themselves."""
    return message.replace("{", "{{").replace("}", "}}")


def raises(raised: type[Exception], message: str, during: Literal["plan", "run"] = "plan") -> Outcome:
    """The real library notices it: `message` may use the mistake's params, {like} this."""
    return Outcome("raises", raised, message, during)
