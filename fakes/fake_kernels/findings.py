"""From a mistake found in a call to what happens: an explanation in strict mode, the act in faithful.

The checks only say what they see (`Finding`s, most telling first). `settle` decides, so that no check
knows about modes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fake_kernels import mode
from fake_kernels.errors import KernelError, Text, context_lost, kernel_error
from fake_kernels.outcomes import PATH_NAMES, UNMEASURED, Outcome, Path, verbatim


@dataclass(frozen=True)
class Mistake:
    """One way to be wrong. The sentences are format strings over a finding's params.

    real: the measured outcome by path; a path that is missing was not measured.
    note: what the library's source says about it, appended to the account of the real kernel.
    """

    code: str
    what: Text
    fix: Text
    real: Mapping[str, Outcome] = field(default_factory=dict)
    note: Text | None = None

    def outcome(self, path: Path) -> Outcome:
        """What the kernel on `path` did; `UNMEASURED` when nobody looked."""
        return self.real.get(path, UNMEASURED)


@dataclass(frozen=True)
class Finding:
    """A mistake at one place of one call. `outcome` overrides the table where the case decides."""

    mistake: Mistake
    argument: str
    params: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None

    def settled_outcome(self, path: Path) -> Outcome:
        """What the real kernel on `path` does here."""
        return self.outcome or self.mistake.outcome(path)

    def error(self, path: Path) -> KernelError:
        """The explanation, of the type that the real library raises if it does."""
        outcome = self.settled_outcome(path)
        values = {"argument": self.argument, **self.params}
        return kernel_error(
            self.mistake.code,
            argument=self.argument,
            params={**self.params, "kernel": path},
            what={lang: _sentence(self.mistake.what[lang].format(**values)) for lang in ("en", "zh")},
            real={lang: self._account(lang, path, outcome, values) for lang in ("en", "zh")},
            fix={lang: self.mistake.fix[lang].format(**values) for lang in ("en", "zh")},
            raised=outcome.raised or RuntimeError,
        )

    def _account(self, lang: str, path: Path, outcome: Outcome, values: dict[str, Any]) -> str:
        """What the kernel of this call does, then the others if they differ, then what the source says."""
        colon, comma, stop, semicolon = (": ", ", ", ". ", "; ") if lang == "en" else ("：", "、", "。", "；")
        sentences = [PATH_NAMES[path][lang] + colon + outcome.describe(lang, values)]
        if self.outcome is None:
            alike: dict[str, list[str]] = {}
            for other, told in self.mistake.real.items():
                if told != outcome and told.can_tell(values):
                    alike.setdefault(told.describe(lang, values), []).append(PATH_NAMES[other][lang])
            sentences += [comma.join(names) + colon + clause for clause, names in alike.items()]
        account = semicolon.join(sentences)
        if self.mistake.note is not None:
            note = self.mistake.note[lang].format(**values)
            account += (" " if account.endswith(".") else stop) + note
        return account if account.endswith((".", "。")) else account + stop.strip()


def _sentence(text: str) -> str:
    """With one full stop, where a message of the library's brought its own."""
    return text[:-2] + text[-1] if text.endswith(("..", ".。")) else text


def settle(findings: Iterable[Finding], path: Path, *, during: str) -> Outcome | None:
    """Act on what was found in a call of `during` ("plan" or "run").

    Strict: the first finding is raised as a KernelError. Faithful: the first one that plays a part in
    the result counts; an error of that call is raised as the real library words it, anything else is returned for
    the kernel to act out (None: nothing is wrong). A case that was not measured is refused.
    """
    for finding in findings:
        if mode.is_strict():
            raise finding.error(path)
        outcome = finding.settled_outcome(path)
        if outcome.kind in ("harmless", "ignored"):
            continue
        if outcome.kind == "unmeasured":
            raise _unmeasured(finding, path)
        if outcome.kind == "build_fails":
            raise RuntimeError("JIT build failed (the fake has no record of the compiler's own text)")
        if outcome.kind == "raises" and outcome.raised is not None:
            message = outcome.message.format(**{"argument": finding.argument, **finding.params})
            failure = Outcome("raises", outcome.raised, verbatim(message), outcome.during)
            if outcome.during == during or during == "run":
                raise outcome.raised(message)
            return failure
        if outcome.kind in ("dies", "hangs"):
            raise _not_acted_out(finding, path)
        if outcome.kind == "illegal":
            return replace(outcome, message=finding.mistake.code)
        return outcome
    return None


def act(outcome: Outcome | None) -> None:
    """What a launched kernel does before it writes anything: fail, or take the context with it."""
    if outcome is None:
        return
    if outcome.kind == "raises" and outcome.raised is not None:
        raise outcome.raised(outcome.message.format())
    if outcome.kind == "illegal":
        mode.lose_context(outcome.message, outcome.error)
        raise context_lost(outcome.message, outcome.error)


def require_context() -> None:
    """Raises like every CUDA call does once the context is lost."""
    lost = mode.lost_context()
    if lost is not None:
        raise context_lost(*lost)


def _unmeasured(finding: Finding, path: Path) -> KernelError:
    return _not_modelled(
        finding,
        path,
        {
            "en": "Not modelled in faithful mode: nobody measured this mistake on a GPU.",
            "zh": "faithful 模式没有模拟：这个错误没有在 GPU 上测量过。",
        },
    )


def _not_acted_out(finding: Finding, path: Path) -> KernelError:
    told = finding.settled_outcome(path)
    return _not_modelled(
        finding,
        path,
        {
            "en": f"Not acted out in faithful mode: here the real kernel {told.describe('en', {})}.",
            "zh": f"faithful 模式不照做：真实的 kernel 在这里{told.describe('zh', {})}。",
        },
    )


def _not_modelled(finding: Finding, path: Path, why: Text) -> KernelError:
    told = finding.error(path)
    return kernel_error(
        "not_modelled",
        argument=finding.argument,
        params={**told.params, "mistake": told.code},
        what={"en": f"{why['en']} {told.what['en']}", "zh": f"{why['zh']}{told.what['zh']}"},
        real=told.real,
        fix=told.fix,
        raised=NotImplementedError,
    )
