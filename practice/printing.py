"""A verdict in a terminal: what failed, why, and the smallest case that shows it. In Chinese or English."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding

from judge.core.picture import pictures
from judge.core.verdict import Mismatch
from judge.core.wording import say, say_diagnosis, say_mismatch, say_status
from judge.packages import Package, show_value
from practice.statement import Prose, Statement, split_hints
from tools.steps_track import find_section

ROOT = Path(__file__).resolve().parent.parent

TEXTS = {
    "passed": {"zh": "{passed}/{total} 个用例通过", "en": "{passed} of {total} cases passed"},
    "facts": {
        "zh": "CPU {time_ms} 毫秒 · 隔离级别 {tier} · {kernels}",
        "en": "{time_ms} ms CPU · tier {tier} · {kernels}",
    },
    "hidden": {"zh": "隐藏用例", "en": "hidden case"},
    "diagnosis": {"zh": "诊断", "en": "Diagnosis"},
    "counterexample": {"zh": "最小的反例", "en": "The smallest counterexample"},
    "read": {"zh": "读一读", "en": "Read"},
    "apart": {
        "zh": "下面的输入能把它们分开，各自的输出是：",
        "en": "This input tells them apart; they give:",
    },
    "inputs": {"zh": "输入", "en": "inputs"},
    "expected": {"zh": "应为", "en": "expected"},
    "got": {"zh": "你的输出", "en": "yours"},
    "printed": {"zh": "打印的内容", "en": "printed"},
    "run_only": {"zh": "只运行了公开用例", "en": "public cases only"},
    "seed": {
        "zh": "用同样的用例再判一次：--seed {seed}",
        "en": "judge with the same cases again: --seed {seed}",
    },
    "watching": {
        "zh": "正在看 {file}，保存就判题；Ctrl-C 结束。",
        "en": "Watching {file}: saved is judged. Ctrl-C ends.",
    },
    "written": {"zh": "已写好 {file}", "en": "Wrote {file}"},
    "kept": {"zh": "{file} 已经在那里，没有动它", "en": "{file} is there already and was left alone"},
    "next": {
        "zh": "写完后运行：python practice/judge.py {id}",
        "en": "When it is done: python practice/judge.py {id}",
    },
    "hints": {
        "zh": "提示（看第 N 条：python practice/judge.py hint {id} N）",
        "en": "Hints (to read number N: python practice/judge.py hint {id} N)",
    },
    "no_problem": {
        "zh": "没有题目 {id}；`python practice/judge.py list` 列出所有题目",
        "en": "there is no problem {id}; `python practice/judge.py list` shows all",
    },
    "no_hint": {
        "zh": "题目 {id} 没有第 {number} 条提示；`python practice/judge.py start {id}` 会列出有哪些",
        "en": "problem {id} has no hint {number}; `python practice/judge.py start {id}` lists those it has",
    },
    "not_started": {
        "zh": "还没有 {file}；先运行 `python practice/judge.py start {id}`，它会写好这个文件",
        "en": "{file} is not there; `python practice/judge.py start {id}` writes it",
    },
    "no_file": {
        "zh": "找不到文件 {file}",
        "en": "{file} is not there",
    },
    "no_case": {
        "zh": "没有公开用例 {name}；有这些：{names}",
        "en": "there is no public case {name}; there are: {names}",
    },
    "no_gpu": {
        "zh": "--kernels real 要有 NVIDIA GPU、flashinfer、sgl_kernel 和为它准备的判题机；"
        "`python practice/judge.py doctor` 会说这台机器有什么",
        "en": "--kernels real needs an NVIDIA GPU with flashinfer and sgl_kernel, and a judge for it; "
        "`python practice/judge.py doctor` says what there is here",
    },
}


def print_statement(console: Console, package: Package, lang: str) -> None:
    """The problem; of its hints only the titles, since a hint that is read cannot be unread."""
    body, hints = split_hints(package.statement(lang))
    console.print(f"{package.id}. {package.title[lang]}", style="bold", markup=False)
    console.print(Statement(body))
    if hints:
        console.print("\n" + TEXTS["hints"][lang].format(id=package.id), style="dim", markup=False)
        console.print(Statement("\n".join(f"- {hint.title}" for hint in hints)))
    console.print()


def print_hint(console: Console, package: Package, number: int, lang: str) -> bool:
    """Hint `number`, from 1. False if the problem has no such hint."""
    _, hints = split_hints(package.statement(lang))
    if number > len(hints):
        return False
    console.print(Statement(f"**{hints[number - 1].title}**\n\n{hints[number - 1].text}"))
    return True


def print_verdict(
    console: Console,
    package: Package,
    verdict: dict[str, Any],
    seed: int | None,
    public_only: bool,
    lang: str,
) -> None:
    """`seed` None: it is not known, as on a site."""

    def text(key: str, **params: Any) -> str:
        return TEXTS[key][lang].format(**params)

    accepted = verdict["status"] == "accepted"
    mark, style = ("✓", "bold green") if accepted else ("✗", "bold red")
    console.print(f"{mark} {say_status(verdict['status'], lang)}", style=style, end="  ")
    console.print(text("passed", **verdict), end="  ")
    console.print(text("facts", **verdict) + (" · " + text("run_only") if public_only else ""), style="dim")
    if verdict["message"]:
        print_prose(console, say(verdict["message"], lang))
    print_failures(console, verdict, lang)
    if verdict["diagnosis"]:
        console.print(f"\n{text('diagnosis')}", style="bold")
        for entry in verdict["diagnosis"]:
            print_prose(console, say_diagnosis(entry, lang), 2)
            if entry.get("apart"):
                print_apart(console, entry["apart"], lang)
            if entry.get("section"):
                print_section(console, entry["section"], lang)
    if verdict["counterexample"]:
        print_counterexample(console, package, verdict["counterexample"], lang)
    if not accepted and not public_only and seed is not None:
        console.print("\n" + text("seed", seed=seed), style="dim")


def print_section(console: Console, section: str, lang: str) -> None:
    """Where to read on: the section's heading, and its file if the text has been written."""
    place = find_section(section)
    if place is None:
        return
    text = place.folder / f"text.{lang}.md"
    where = f"{text.relative_to(ROOT)} #{place.anchor}" if text.is_file() else place.title[lang]
    console.print(f"  → {TEXTS['read'][lang]}: {place.heading[lang]} ({where})", style="dim", markup=False)


def print_apart(console: Console, apart: dict[str, Any], lang: str) -> None:
    """An input on which mistakes differ that this run could not tell apart."""
    console.print(f"  {TEXTS['apart'][lang]}", markup=False)
    print_values(console, TEXTS["inputs"][lang], apart["inputs"])
    for number, given in apart["given"].items():
        print_values(console, f"({number})", given)


def print_failures(console: Console, verdict: dict[str, Any], lang: str) -> None:
    """Failing cases: public ones with all that is wrong, hidden ones grouped by what may be told."""
    hidden: dict[str, int] = {}
    brief = False
    for case in verdict["cases"]:
        if case["status"] in ("accepted", "not_run") or case["message"] == verdict["message"]:
            continue
        hidden_case = case["group"] == "hidden"
        said = say_status(case["status"], lang)
        if case["message"]:
            said = say(case["message"], lang, hidden=hidden_case)
        if hidden_case:
            hidden[said] = hidden.get(said, 0) + 1
            continue
        if brief and case["mismatches"]:  # the first case says it all; the others mostly say it again
            said = say_mismatch(Mismatch(**case["mismatches"][0]), lang)
        brief = True
        print_failure(console, case["name"], said)
        if case["output"].strip():
            console.print(
                f"    {TEXTS['printed'][lang]}: {case['output'].strip()[:500]}", style="dim", markup=False
            )
    for said, count in hidden.items():
        times = f" ×{count}" if count > 1 else ""
        print_failure(console, f"{TEXTS['hidden'][lang]}{times}", said)


def print_failure(console: Console, name: str, said: str) -> None:
    text = Prose()
    text.append(f"✗ {name}: ", style="red")
    text.append(said)
    console.print(Padding(text, (0, 0, 0, 2)))


def print_prose(console: Console, text: str, indent: int = 0, style: str = "") -> None:
    """Sentences, all of whose lines are indented."""
    console.print(Padding(Prose(text, style=style), (0, 0, 0, indent), expand=False))


def print_counterexample(console: Console, package: Package, example: dict[str, Any], lang: str) -> None:
    console.print(f"\n{TEXTS['counterexample'][lang]} ({example['case']})", style="bold", markup=False)
    print_values(console, TEXTS["inputs"][lang], example["inputs"])
    print_both(console, example["expected"], example["got"], lang)
    if example["message"] and not example["mismatches"]:
        print_prose(console, say(example["message"], lang), 2, "red")
    for mismatch in example["mismatches"]:
        print_prose(console, say_mismatch(Mismatch(**mismatch), lang), 2, "red")
    print_pictures(console, package, example["expected"], example["got"], lang)


def print_pictures(
    console: Console, package: Package, expected: Any, got: dict[str, Any] | None, lang: str
) -> None:
    """Where outputs differ: which request, which position."""
    for drawn in pictures(expected, got, package.info.requests, lang):
        console.print(
            "\n" + "\n".join(f"    {line}" for line in drawn.splitlines()), markup=False, highlight=False
        )


def print_values(console: Console, title: str, values: dict[str, Any]) -> None:
    console.print(f"  {title}", style="dim")
    width = max((len(k) for k in values), default=0)
    for name, value in values.items():
        print_value(console, f"{name:<{width}} = ", value)


def print_value(console: Console, label: str, value: Any, style: str | None = None) -> None:
    """A value behind its label, all of its lines indented."""
    console.print(f"    {label}{show_value(value)}".replace("\n", "\n    "), style=style, markup=False)


def print_both(console: Console, expected: dict[str, Any], got: dict[str, Any] | None, lang: str) -> None:
    """Expected and own outputs, field by field; fields that agree once."""
    got = got or {}
    width = max(len(k) for k in {**expected, **got})
    for name in {**expected, **got}:
        if name in expected and name in got and expected[name] == got[name]:
            print_value(console, f"{name:<{width}} = ", expected[name], "green")
            continue
        label = f"{name:<{width}}   "
        if name in expected:
            print_value(console, f"{label}{TEXTS['expected'][lang]} ", expected[name])
            label = " " * len(label)
        if name in got:
            print_value(console, f"{label}{TEXTS['got'][lang]} ", got[name], "red")


def print_case(console: Console, package: Package, verdict: dict[str, Any], name: str, lang: str) -> None:
    case = next(c for c in package.public if c.name == name)
    result = next(c for c in verdict["cases"] if c["name"] == name)
    console.print(f"{name}: {say_status(result['status'], lang)}", style="bold")
    if case.note:
        console.print(case.note[lang], style="dim", markup=False)
    print_values(console, TEXTS["inputs"][lang], dict(case.inputs))
    print_both(console, dict(case.expected), result["got"], lang)
    if result["mismatches"]:
        print_pictures(console, package, dict(case.expected), result["got"], lang)
    for message in (result["message"], verdict["message"]):
        if message and message["code"] != "mismatches":
            console.print(say(message, lang), style="red", markup=False)
    if result["output"].strip():
        console.print(f"{TEXTS['printed'][lang]}: {result['output'].strip()}", style="dim", markup=False)
