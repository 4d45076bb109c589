"""What a child is given before any case: the scene of its problem, its limits, and the program to load."""

from __future__ import annotations

from judge.core import frames
from judge.packages import Package
from judge.sandbox.client import Scene
from judge.sandbox.process import ChildLimits
from judge.trees import FAKES, tree_of

LOAD_MS = 2000  # CPU milliseconds for executing the submission's own top level
TEACH_MS = 500  # CPU milliseconds of a teach case: they are tiny


def scene_of(package: Package, *, stubbed: bool) -> Scene:
    """What a child of this problem sees: nothing but torch unless the package needs the tree or the fakes."""
    paths: list[str] = []
    modules: list[str] = []
    if "tree" in package.info.needs:
        paths.append(str(tree_of(package, stubbed=stubbed)))
        if package.target and package.kind == "graft":
            modules.append(package.target.partition(":")[0].removesuffix(".py").replace("/", "."))
    if "fakes" in package.info.needs:
        paths.append(str(FAKES))
        # The engine imports them when a backend is made: here, once, and not in every child.
        modules += ["flashinfer", "sgl_kernel.flash_attn"]
    driver = package.text("driver.py") if "driver.py" in package.files else ""
    return Scene(tuple(paths), tuple(modules), driver)


def load_frame(package: Package, source: str) -> bytes:
    """The frame that hands a program to a child."""
    return frames.encode(
        "load",
        {
            "source": source,
            "entry": package.entry,
            "arity": len(package.parameters),
            "signature": package.info.signature,
            "kind": package.kind,
            "target": package.target,
            "calls": package.has_stub,
        },
    )


def child_limits(package: Package) -> ChildLimits:
    """The package's limits as a child's."""
    limits = package.limits
    return ChildLimits(limits.case_ms, limits.total_ms, limits.memory_mb, limits.output_kb, limits.reply_kb)
