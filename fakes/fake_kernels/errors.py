"""The one error of the fakes, made to be read: what is wrong, where, what a GPU would do, what to do.

The real libraries raise ValueError, KeyError, AttributeError and so on for what they do notice. An
error of ours about the same thing is also of that type and contains that message, so code and tests
written for the real library keep working.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Text = Mapping[str, str]
"""One sentence or paragraph in both languages: {"zh": ..., "en": ...}."""

_LABELS = {
    "en": ("argument", "real kernel", "fix", ": "),
    "zh": ("参数", "真实 kernel", "怎么改", "："),
}


class KernelError(RuntimeError):
    """A call that a fake kernel refuses.

    code: snake_case id of the mistake, stable. argument: name of the argument as the caller wrote it.
    params: JSON values (numbers, strings, lists) that the sentences were made from; "position" is the
    index within the argument and "value" what stands there, when there is one place to point at.
    what / real / fix: {"zh", "en"}: what is wrong, what the real kernel does, how to repair it.
    """

    def __init__(
        self, code: str, *, argument: str, params: Mapping[str, Any], what: Text, real: Text, fix: Text
    ) -> None:
        self.code = code
        self.argument = argument
        self.params = dict(params)
        self.what = dict(what)
        self.real = dict(real)
        self.fix = dict(fix)
        super().__init__(self.text("en"))

    @property
    def place(self) -> str:
        """The argument, with its index and value when the mistake sits at one place."""
        place = self.argument
        if "position" in self.params:
            place += f"[{self.params['position']}]"
        if "value" in self.params:
            place += f" = {self.params['value']}"
        return place

    def text(self, lang: str) -> str:
        """The whole explanation in "zh" or "en", one line a part."""
        argument, real, fix, colon = _LABELS[lang]
        return "\n".join(
            (
                self.what[lang],
                f"{argument}{colon}{self.place}",
                f"{real}{colon}{self.real[lang]}",
                f"{fix}{colon}{self.fix[lang]}",
            )
        )

    def __str__(self) -> str:
        return self.text("en")


_classes: dict[str, type[KernelError]] = {}


def _both(raised: type[Exception]) -> type[KernelError]:
    """A class that is a KernelError and a `raised`, made once for each type."""
    if issubclass(KernelError, raised):
        return KernelError
    name = f"Kernel{raised.__name__}"
    if name not in _classes:
        _classes[name] = type(name, (KernelError, raised), {"__module__": __name__})
    return _classes[name]


def kernel_error(
    code: str,
    *,
    argument: str,
    params: Mapping[str, Any],
    what: Text,
    real: Text,
    fix: Text,
    raised: type[Exception] = RuntimeError,
) -> KernelError:
    """A KernelError that is also a `raised`, the type that the real library uses for it."""
    return _both(raised)(code, argument=argument, params=params, what=what, real=real, fix=fix)


def not_modelled(argument: str, value: object, *, why: Text | None = None) -> KernelError:
    """For what the real kernel takes and the fake doesn't compute: refused, never ignored.

    The error is also a NotImplementedError.
    """
    shown = repr(value) if not hasattr(value, "shape") else f"tensor{tuple(value.shape)}"
    reason = why or {
        "en": "The fake doesn't compute this option, and ignoring it would give wrong numbers.",
        "zh": "假 kernel 不计算这个选项；忽略它会得到错误的结果，所以拒绝。",
    }
    return kernel_error(
        "not_modelled",
        argument=argument,
        params={"value": shown},
        what={
            "en": f"Not modelled by the fake: {argument} = {shown}. {reason['en']}",
            "zh": f"假 kernel 没有模拟 {argument} = {shown}。{reason['zh']}",
        },
        real={
            "en": "may well support it; nothing about it was measured for this fake.",
            "zh": "可能支持；这个假 kernel 没有它的测量依据。",
        },
        fix={
            "en": "leave the option at its default, or run with the real library on a GPU.",
            "zh": "用默认值，或者在 GPU 上用真实的库。",
        },
        raised=NotImplementedError,
    )


def context_lost(cause: str, error: str) -> KernelError:
    """What every call meets after a kernel failed on the GPU. cause: code of the mistake. error: what CUDA says."""
    return kernel_error(
        "context_lost",
        argument="-",
        params={"cause": cause},
        what={
            "en": f"CUDA error: {error} (caused by: {cause})",
            "zh": f"CUDA error: {error}（起因：{cause}）",
        },
        real={
            "en": "the context is lost: every later CUDA call of the process fails like this one.",
            "zh": "上下文已失效：这个进程之后的每次 CUDA 调用都会这样失败。",
        },
        fix={
            "en": "repair the metadata of the first failing call and start a new process.",
            "zh": "修好第一次出错的那次调用的元数据，然后重新启动进程。",
        },
    )
