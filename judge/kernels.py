"""Which real kernels are installed here, and whether they belong together: compiled packages fit one version of torch, and
one that doesn't fails in odd ways long after it was imported."""

from __future__ import annotations

from importlib import metadata

# torch's version -> what gives the module `sgl_kernel`; seen working together (FlashInfer compiles for any torch).
KNOWN = {
    "2.13": ("sglang-kernel", "0.4.8"),
    "2.11": ("sglang-kernel", "0.4.6"),
    "2.9": ("sgl-kernel", "0.3.21"),
}
FLASHINFER = "0.7.2.post1"
TEXTS = {
    "known": {"zh": "{0}：见过一起工作的组合", "en": "{0}: a combination that is known to work"},
    "other": {
        "zh": "{0}：与 torch {1} 一起用过的是 {2}；不是这个组合，结果不作数",
        "en": "{0}: with torch {1} the one that was seen working is {2}; with another, results count for nothing",
    },
    "absent": {"zh": "{0}：没有安装", "en": "{0}: not installed"},
    "torch": {
        "zh": "没有见过能和 torch {0} 一起工作的 sgl_kernel",
        "en": "no sgl_kernel is known to work with torch {0}",
    },
}


def versions() -> dict[str, str]:
    """Installed versions of torch and the kernel packages, without local parts (`+cu130`)."""
    found = {}
    for name in ("torch", "flashinfer-python", "sglang-kernel", "sgl-kernel"):
        try:
            found[name] = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return found


def problems(found: dict[str, str], lang: str) -> list[str]:
    """What is wrong with the installed packages; empty if they are a combination that was seen working."""
    torch = ".".join(found.get("torch", "").split(".")[:2])
    said = []
    if found.get("flashinfer-python") != FLASHINFER:
        said.append(_package("flashinfer-python", found, torch, FLASHINFER, lang))
    if torch not in KNOWN:
        return [*said, TEXTS["torch"][lang].format(found.get("torch", "-"))]
    name, version = KNOWN[torch]
    if found.get(name) != version:
        said.append(_package(name, found, torch, version, lang))
    return said


def _package(name: str, found: dict[str, str], torch: str, wanted: str, lang: str) -> str:
    if name not in found:
        return TEXTS["absent"][lang].format(f"{name}=={wanted}")
    return TEXTS["other"][lang].format(f"{name} {found[name]}", torch, wanted)


def report(lang: str) -> str:
    """What is installed and what is wrong with it, in lines."""
    found = versions()
    listed = ", ".join(f"{name} {version}" for name, version in found.items())
    return "\n".join(problems(found, lang) or [TEXTS["known"][lang].format(listed)])
