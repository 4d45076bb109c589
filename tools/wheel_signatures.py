"""The signatures of a package's functions and methods, read from its sources and never from the running package: the
packages that the fakes stand for import CUDA libraries, which a laptop doesn't have.

Signatures are written as lists: `name`, `name=default`, `*name`, `**name`, and a bare `*` before keyword-only ones.
"""

from __future__ import annotations

import ast
import inspect
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD
POSITIONAL_OR_KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD
_STARS: dict[inspect._ParameterKind, str] = {VAR_POSITIONAL: "*", VAR_KEYWORD: "**"}


class Missing(LookupError):
    """The package has no such name, or has it in a form that this reader doesn't follow; the text says which."""


@dataclass(frozen=True)
class Parameter:
    """One parameter; default as Python writes it, None without one."""

    name: str
    kind: inspect._ParameterKind
    default: str | None = None

    def written(self) -> str:
        """As it stands in a list."""
        star = _STARS.get(self.kind, "")
        return star + self.name + ("" if self.default is None else f"={self.default}")


Parameters = tuple[Parameter, ...]


def written(parameters: Parameters) -> list[str]:
    """The parameters as a list of strings."""
    shown: list[str] = []
    for parameter in parameters:
        starred = any(one.startswith("*") for one in shown)
        if parameter.kind is KEYWORD_ONLY and not starred:
            shown.append("*")
        shown.append(parameter.written())
    return shown


def of_object(function: Callable[..., object]) -> Parameters:
    """The parameters of a function that runs here."""
    return tuple(
        Parameter(p.name, p.kind, None if p.default is p.empty else repr(p.default))
        for p in inspect.signature(function).parameters.values()
    )


class Sources:
    """A package's Python files, in a wheel or in a folder that has the package's folder in it.

    Invariants
    - `_trees` holds what was parsed so far, by path in the package; a file is parsed once.
    """

    def __init__(self, where: Path) -> None:
        self._where = where
        self._wheel = zipfile.ZipFile(where) if where.is_file() else None
        self._names = frozenset(self._wheel.namelist()) if self._wheel is not None else frozenset()
        self._trees: dict[str, ast.Module] = {}

    def tree(self, module: str) -> tuple[str, ast.Module]:
        """The file of a module, as its path, and what is in it. Raises Missing."""
        stem = module.replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if path not in self._trees:
                text = self._read(path)
                if text is None:
                    continue
                self._trees[path] = ast.parse(text)
            return path, self._trees[path]
        raise Missing(f"there is no module {module}")

    def _read(self, path: str) -> str | None:
        if self._wheel is not None:
            return self._wheel.read(path).decode("utf-8") if path in self._names else None
        file = self._where / path
        return file.read_text("utf-8") if file.is_file() else None

    def signature(self, module: str, path: str) -> Parameters:
        """The parameters of `path` ("function", "Class.method" or "Class", which means its __init__) in `module`,
        wherever that module imports it from. Raises Missing."""
        name, _, method = path.partition(".")
        home, node = self._find(module, name)
        if isinstance(node, ast.ClassDef):
            return self._method(home, node, method or "__init__")
        if method:
            raise Missing(f"{module}.{name} is no class")
        return self._called(node, lambda other: self._find(home, other)[1])

    def _find(self, module: str, name: str) -> tuple[str, ast.AST]:
        """Where a name is defined (a function, a class, or the value it is set to), following imports and aliases."""
        path, tree = self.tree(module)
        package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
        stars: list[str] = []
        for node in _statements(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                return module, node
            if isinstance(node, ast.Assign) and _sets(node, name):
                if isinstance(node.value, ast.Name):
                    return self._find(module, node.value.id)
                return module, node.value
            if isinstance(node, ast.ImportFrom) and node.level + bool(node.module):
                source = _absolute(node, package)
                for alias in node.names:
                    if (alias.asname or alias.name) == name and source.split(".")[0] == module.split(".")[0]:
                        return self._find(source, alias.name)
                    if alias.name == "*":
                        stars.append(source)
        for source in stars:
            try:
                return self._find(source, name)
            except Missing:
                continue
        raise Missing(f"{module} has no {name}")

    def _method(self, module: str, owner: ast.ClassDef, name: str) -> Parameters:
        members = _members(owner)
        if name in members:
            return self._called(members[name], lambda other: members.get(other))
        for base in owner.bases:
            if isinstance(base, ast.Name):
                home, parent = self._find(module, base.id)
                if isinstance(parent, ast.ClassDef):
                    return self._method(home, parent, name)
        raise Missing(f"{module}.{owner.name} has no {name}")

    def _called(self, node: ast.AST | None, find: Callable[[str], ast.AST | None]) -> Parameters:
        """Parameters of a function, of an alias of one, or of functools.partial(function, name=value)."""
        if isinstance(node, ast.FunctionDef):
            return _declared(node.args)
        if isinstance(node, ast.Name):
            return self._called(find(node.id), find)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "functools.partial",
            "functools.partialmethod",
        ):
            wrapped = node.args[0] if len(node.args) == 1 else None
            given = {keyword.arg: _value(keyword.value) for keyword in node.keywords}
            return _bound(self._called(wrapped, find), given)
        raise Missing("neither a function nor made of one: " + (ast.unparse(node) if node else "nothing"))


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module, last first (a later definition replaces an earlier), those under `if`, `else`
    and `try` included."""

    def inside(body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in reversed(body):
            if isinstance(node, ast.If | ast.Try):
                for part in (node.orelse, node.body):
                    yield from inside(part)
            else:
                yield node

    yield from inside(tree.body)


def _members(owner: ast.ClassDef) -> dict[str, ast.AST]:
    """What a class body defines, by name; the implementation of an overloaded method comes last and counts."""
    found: dict[str, ast.AST] = {}
    for node in owner.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif (
            isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        ):
            found[node.targets[0].id] = node.value
    return found


def _sets(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, node.module] if node.module else above)


def _declared(arguments: ast.arguments) -> Parameters:
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + [_value(one) for one in arguments.defaults]
    kinds: list[inspect._ParameterKind] = [inspect.Parameter.POSITIONAL_ONLY] * len(arguments.posonlyargs)
    kinds += [POSITIONAL_OR_KEYWORD] * len(arguments.args)
    found = [Parameter(*one) for one in zip((a.arg for a in plain), kinds, defaults, strict=True)]
    if arguments.vararg:
        found.append(Parameter(arguments.vararg.arg, VAR_POSITIONAL))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(Parameter(argument.arg, KEYWORD_ONLY, None if default is None else _value(default)))
    if arguments.kwarg:
        found.append(Parameter(arguments.kwarg.arg, VAR_KEYWORD))
    return tuple(found)


def _bound(parameters: Parameters, given: dict[str | None, str]) -> Parameters:
    """After functools.partial, as inspect shows it: what is given gets that default, and from the first positional one
    of these on everything is keyword-only."""
    found: list[Parameter] = []
    keyword_only = False
    for parameter in parameters:
        if parameter.name in given:
            keyword_only = keyword_only or parameter.kind is POSITIONAL_OR_KEYWORD
            parameter = replace(parameter, default=given[parameter.name])
        if keyword_only and parameter.kind is POSITIONAL_OR_KEYWORD:
            parameter = replace(parameter, kind=KEYWORD_ONLY)
        if not (keyword_only and parameter.kind is VAR_POSITIONAL):
            found.append(parameter)
    return tuple(found)


def _value(node: ast.expr) -> str:
    """A default as repr would show it: 1e-6 and 1e-06 are one."""
    try:
        return repr(ast.literal_eval(node))
    except ValueError:
        return ast.unparse(node)
