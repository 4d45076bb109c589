"""Ways of getting a problem accepted without solving it, made for a given package. `tools/problems.py verify` demands
that each is refused."""

from __future__ import annotations

from collections.abc import Iterator

from judge.packages import Package


def attacks(package: Package) -> Iterator[tuple[str, str]]:
    """(name, program) of every attack that fits the package."""
    yield "starter", package.starter
    yield "raise", _entry(package, "raise RuntimeError('no')")
    yield "endless", _entry(package, "while True:\n        pass")
    yield "none", _entry(package, "return None")
    yield "first_input", _entry(package, "return args[-1]")
    yield "gc", _SEARCH_GC.format(name=package.entry)
    yield "modules", _SEARCH_MODULES.format(name=package.entry)
    if package.kind == "file":
        yield "file", _FILE.format(target=package.target, name=package.entry)
    symbols = [*([package.target] if package.kind == "graft" else []), *package.info.withhold]
    for number, symbol in enumerate(symbols):
        module, _, path = symbol.partition(":")
        dotted = module.removesuffix(".py").replace("/", ".")
        yield f"import_{number}", _IMPORT.format(module=dotted, path=path, name=package.entry)
        yield f"source_{number}", _SOURCE.format(module=dotted, path=path, name=package.entry)
        yield f"bytecode_{number}", _BYTECODE.format(module=dotted, path=path, name=package.entry)


def _entry(package: Package, body: str) -> str:
    return f"def {package.entry}(*args):\n    {body}\n"


# The tree's own function, before the judge sets the submission in its place.
_IMPORT = """
import {module} as module

found = module
for part in "{path}".split("."):
    found = getattr(found, part)
twin = getattr(found, "{name}", found)


def {name}(*args):
    return twin(*args)
"""

# The file that the submission stands in for, from where the tree is.
_FILE = """
import os
import sys

for folder in sys.path:
    path = os.path.join(folder, "{target}")
    if os.path.exists(path):
        with open(path) as file:
            exec(file.read())

{name} = globals().get("{name}", object)
"""

# Its text, from the file it was imported from.
_SOURCE = """
import inspect
import textwrap
import {module} as module

found = module
for part in "{path}".split("."):
    found = getattr(found, part)
twin = getattr(found, "{name}", found)
text = textwrap.dedent(inspect.getsource(twin))
scope = dict(vars(module))
exec(text, scope)
{name} = scope["{name}"]
"""

# Its compiled form, from the .pyc beside it or in __pycache__.
_BYTECODE = """
import glob
import marshal
import os
import types
import {module} as module

folder = os.path.dirname(module.__file__)
codes = []
for path in glob.glob(folder + "/**/*.pyc", recursive=True):
    with open(path, "rb") as file:
        codes.append(marshal.loads(file.read()[16:]))
found = None
while codes:
    code = codes.pop()
    codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    if code.co_name == "{name}" and len(code.co_code) > 40:
        found = code
if found is None:
    raise LookupError("nothing compiled")
{name} = types.FunctionType(found, vars(module))
"""

# Any function of that name that the collector knows and that does something.
_SEARCH_GC = """
import gc
import types

gc.unfreeze()
found = [
    f
    for f in gc.get_objects()
    if isinstance(f, types.FunctionType) and f.__name__ == "{name}" and len(f.__code__.co_code) > 40
]
if not found:
    raise LookupError("nothing in memory")
{name} = found[0]
"""

# Any module that holds such a function or a text that defines one.
_SEARCH_MODULES = """
import sys
import types

found = None
for module in list(sys.modules.values()):
    for value in list(vars(module).values()) if isinstance(module, types.ModuleType) else ():
        for thing in (value, getattr(value, "{name}", None)) if isinstance(value, type) else (value,):
            if isinstance(thing, types.FunctionType) and thing.__name__ == "{name}":
                found = thing if len(thing.__code__.co_code) > 40 else found
            if isinstance(thing, str) and "def {name}" in thing:
                scope = {{}}
                exec(thing, scope)
                found = scope["{name}"]
if found is None:
    raise LookupError("nothing in sys.modules")
{name} = found
"""
