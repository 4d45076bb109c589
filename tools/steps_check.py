"""Does each chapter stand on its own? Its tree is built in a fresh folder, and nothing else of the engine is
in reach.

Five questions a chapter: do imports stay inside the tree, can every module be imported where no optional
package is installed, does the chapter's main run, does it print what is kept for readers, do its tests pass. `derive` asks
the first and third of a tree without early files, and so finds out which ones the chapter has to borrow.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.steps_build import build
from tools.steps_manifest import (
    PACKAGE,
    ROOT,
    Chapter,
    StepError,
    chapters_of,
    get_chapter,
    manifest_faults,
    tree_files,
)

MAIN_SECONDS = 120
TESTS_SECONDS = 600
IMPORT_SECONDS = 120

# Packages that a learner may do without. The fakes have two of these names, so they are left out too.
OPTIONAL_PACKAGES = ("flashinfer", "sgl_kernel", "transformers")

_IMPORT_ALL = """
import importlib, sys
optional, modules = sys.argv[1].split(","), sys.argv[2:]

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in optional:
            raise ModuleNotFoundError(f"No module named {name!r} (an optional package)", name=name)

sys.meta_path.insert(0, Absent())
for module in modules:
    importlib.import_module(module)
"""


@dataclass(frozen=True)
class Outcome:
    """One thing that was looked at. `detail` is what a reader needs to see if it failed; `printed` what a program wrote to
    its standard output."""

    what: str
    passed: bool
    detail: str = ""
    printed: str = ""


def check(
    numbers: Iterable[int] | None,
    model: Callable[[], Path],
    report: Callable[[Outcome], None],
    root: Path = ROOT,
) -> bool:
    """Check the manifest and the chapters `numbers` (None: all), reporting each outcome as it is known.

    model: gives the folder of the model that mains and tests run on; called if there is one to run.
    """
    passed = True

    def tell(outcome: Outcome) -> None:
        nonlocal passed
        passed = passed and outcome.passed
        report(outcome)

    faults = manifest_faults(root)
    tell(Outcome("manifest", not faults, "\n".join(faults)))
    if faults:
        return False
    for number in numbers if numbers is not None else chapters_of(root):
        get_chapter(number, root)
        with tempfile.TemporaryDirectory(prefix=f"ch{number:02d}-") as folder:
            tree = Path(folder) / "tree"
            build(number, tree, root=root)
            for outcome in _check_chapter(number, tree, model, root):
                tell(outcome)
    return passed


def _check_chapter(number: int, tree: Path, model: Callable[[], Path], root: Path) -> Iterable[Outcome]:
    chapter = get_chapter(number, root)
    name = f"chapter {number}"
    strays = stray_imports(tree, tree_files(number, root))
    yield Outcome(
        f"{name}: imports stay inside its {len(tree_files(number, root))} files",
        not strays,
        "\n".join(strays),
    )
    yield _import_all(f"{name}: every module imports without optional packages", tree)
    if chapter.main is None:
        yield Outcome(f"{name}: has no main yet", True)
    else:
        run = _run_main(f"{name}: {chapter.main}", chapter.main, tree, model(), root)
        yield run
        if run.passed:
            yield _same_output(f"{name}: {chapter.main} prints what is kept", chapter, run.printed)
    if chapter.tests:
        yield _run_tests(f"{name}: {' '.join(chapter.tests)}", chapter.tests, tree, model(), root)


def stray_imports(tree: Path, paths: Iterable[str]) -> list[str]:
    """Imports of engine modules, also those inside functions, that none of `paths` provides."""
    known = {_module(path) for path in paths}
    strays = []
    for path in paths:
        for line, target, names in _engine_imports(tree / path):
            if target not in known:
                strays.append(f"{path}:{line} imports {target}, which is not in this tree")
                continue
            # `from package import module` names a file as well.
            for name in names:
                inner = f"{target}.{name}"
                if inner not in known and f"{target.replace('.', '/')}/__init__.py" in paths:
                    strays += _missing_name(tree, path, line, target, name)
    return strays


def _missing_name(tree: Path, path: str, line: int, package: str, name: str) -> list[str]:
    """A name taken from a package must be a file of the tree (asked before) or bound in its __init__.py."""
    init = ast.parse((tree / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    bound = {node.name for node in init.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(init):
        if isinstance(node, ast.alias):
            bound.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return [] if name in bound else [f"{path}:{line} imports {name} from {package}, which has neither"]


def _engine_imports(file: Path) -> Iterable[tuple[int, str, list[str]]]:
    """Line, module and imported names of each import of the engine's own modules, except those that only a
    type checker sees."""
    for node in _run_time_nodes(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == PACKAGE:
                    yield node.lineno, alias.name, []
        elif isinstance(node, ast.ImportFrom):
            # The engine spells its imports out; a relative one cannot lead anywhere but into the engine.
            module = f"{PACKAGE} (relative import)" if node.level else node.module or ""
            if module.startswith(PACKAGE) and module.removeprefix(PACKAGE)[:1] in ("", ".", " "):
                yield node.lineno, module, [alias.name for alias in node.names]


def _run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, without the bodies of `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if (
            isinstance(child, ast.If)
            and isinstance(child.test, ast.Name)
            and child.test.id == "TYPE_CHECKING"
        ):
            for other in child.orelse:
                yield other
                yield from _run_time_nodes(other)
            continue
        yield child
        yield from _run_time_nodes(child)


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _import_all(what: str, tree: Path) -> Outcome:
    # __main__ runs the program when it is imported.
    modules = [_module(file.relative_to(tree).as_posix()) for file in sorted(tree.rglob("*.py"))]
    modules = [module for module in modules if not module.endswith("__main__")]
    command = [sys.executable, "-c", _IMPORT_ALL, ",".join(OPTIONAL_PACKAGES), *modules]
    return _run(what, command, tree, {"PYTHONPATH": str(tree)}, IMPORT_SECONDS)


def _run_main(what: str, main: str, tree: Path, model: Path, root: Path) -> Outcome:
    place = tree / main
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(root / main, place)
    return _run(what, [sys.executable, main], tree, _surroundings(tree, model, root), MAIN_SECONDS)


def main_output(number: int, model: Callable[[], Path], root: Path = ROOT) -> str:
    """What chapter `number`'s main prints on the chapter's own tree. StepError if it has none or fails."""
    chapter = get_chapter(number, root)
    if chapter.main is None:
        raise StepError(f"chapter {number} has no main")
    with tempfile.TemporaryDirectory(prefix=f"ch{number:02d}-") as folder:
        tree = Path(folder) / "tree"
        build(number, tree, root=root)
        run = _run_main(chapter.main, chapter.main, tree, model(), root)
    if not run.passed:
        raise StepError(f"{chapter.main} fails:\n{run.detail}")
    return run.printed


def _same_output(what: str, chapter: Chapter, printed: str) -> Outcome:
    """Is what readers are shown still what the main prints? Times and rounding errors differ from run to run."""
    if not chapter.output.is_file():
        return Outcome(f"{what}: nothing yet", True)
    kept = chapter.output.read_text(encoding="utf-8")
    if steady(kept) == steady(printed):
        return Outcome(what, True)
    lines = difflib.unified_diff(steady(kept), steady(printed), "kept", "printed now", lineterm="", n=1)
    told = "\n".join(lines)
    return Outcome(what, False, f"{told}\nIf that is meant: python tools/steps.py output {chapter.number}")


def steady(output: str) -> list[str]:
    """The lines of an output without what no two runs share: every number with a fraction but an exact zero becomes ~, and
    runs of blanks, which depend on its width, become one."""
    masked = re.sub(r"\d+\.\d+(?:e[+-]?\d+)?", lambda n: n[0] if float(n[0]) == 0 else "~", output)
    return [re.sub(r"[ \t]+", " ", line).strip() for line in masked.strip().splitlines()]


def _run_tests(what: str, tests: Iterable[str], tree: Path, model: Path, root: Path) -> Outcome:
    """The chapter's tests beside its tree, under a configuration of their own: the repository's would put the
    repository's engine on the path."""
    beside = tree.parent / "tests"
    beside.mkdir()
    names = []
    for test in tests:
        for name in (test, f"{test.rpartition('/')[0]}/conftest.py"):
            if (root / name).is_file():
                shutil.copyfile(root / name, beside / Path(name).name)
        names.append(Path(test).name)
    (beside / "pytest.ini").write_text(f"[pytest]\npythonpath = {tree} {root / 'fakes'}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pytest.ini", *names]
    surroundings = _surroundings(tree, model, root)
    # They are plain pytest: plugins that are installed beside it take longer to import than most chapters' tests to run.
    surroundings["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return _run(what, command, beside, surroundings, TESTS_SECONDS)


def _surroundings(tree: Path, model: Path, root: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": os.pathsep.join([str(tree), str(root / "fakes")]),
        "MINISGL_MODEL": str(model),
        "HF_HUB_OFFLINE": "1",
    }


def _run(what: str, command: list[str], cwd: Path, extra: dict[str, str], seconds: int) -> Outcome:
    """Run a command with nothing of this process's Python settings but the interpreter."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MINISGL_"))
    }
    environment.pop("KERNELS", None)
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8", **extra}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, timeout=seconds, text=True, encoding="utf-8", errors="replace",
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        text = "".join(_as_text(output) for output in (error.stdout, error.stderr))
        return Outcome(what, False, f"not done after {seconds} s\n{text}")
    return Outcome(what, done.returncode == 0, f"{done.stdout}{done.stderr}".rstrip(), done.stdout)


def _as_text(output: bytes | str | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def derive(number: int, model: Callable[[], Path], root: Path = ROOT) -> list[str]:
    """The files that chapter `number` has to bring in early: what its own and earlier files import, and what
    its main asks for when it runs on them. Each is a path; StepError if the main fails for another reason."""
    chapter = get_chapter(number, root)
    before = [n for n in chapters_of(root) if n < number]
    paths = list(dict.fromkeys([*(tree_files(before[-1], root) if before else []), *chapter.new]))
    wanted: list[str] = []
    while True:
        missing = _first_missing(paths, root) or _missing_at_run(chapter.main, paths, model, root)
        if missing is None:
            return wanted
        path = missing if missing.endswith(".py") else _file_of(missing, root)
        if path in paths:
            raise StepError(f"{chapter.main} does not find {missing}, although {path} is in its tree")
        wanted.append(path)
        paths.append(path)


def _first_missing(paths: list[str], root: Path) -> str | None:
    """An engine module, or the __init__.py of a package, that the files need and do not have."""
    known = {_module(path) for path in paths}
    for path in paths:
        folder = path.rpartition("/")[0]
        if f"{folder}/__init__.py" not in paths:
            return f"{folder}/__init__.py"
        for _, target, names in _engine_imports(root / path):
            if target not in known:
                return target
            for name in names:
                inner = f"{target.replace('.', '/')}/{name}.py"
                if f"{target}.{name}" not in known and (root / inner).is_file():
                    return inner
    return None


def _missing_at_run(main: str | None, paths: list[str], model: Callable[[], Path], root: Path) -> str | None:
    if main is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for path in paths:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, tree / path)
        outcome = _run_main(main, main, tree, model(), root)
    if outcome.passed:
        return None
    missing = rf"No module named '({PACKAGE}[\w.]*)'|\(({PACKAGE}[\w.]*)\) arrives in chapter"
    named = list(re.finditer(missing, outcome.detail))
    if not named:
        raise StepError(f"{main} fails for a reason other than a missing file:\n{outcome.detail}")
    return str(named[-1].group(1) or named[-1].group(2))


def _file_of(module: str, root: Path) -> str:
    base = module.replace(".", "/")
    for path in (f"{base}.py", f"{base}/__init__.py"):
        if (root / path).is_file():
            return path
    raise StepError(f"{module} is imported, but the checkout has no such module")
