"""The chapter's file tree as a submission sees it: built once for each set of files, with the answer taken out."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from judge.packages import ROOT, Package
from tools import steps

# The site's data folder may be elsewhere: a container's checkout is read-only.
CACHE = Path(os.environ.get("COURSE_DATA_DIR") or ROOT / "var") / "trees"
FAKES = ROOT / "fakes"


def tree_of(package: Package, *, stubbed: bool, cache: Path = CACHE) -> Path:
    """The folder of the problem's chapter: for submissions with the target and everything withheld stubbed, for
    references whole. Built on first use; named by its content, so that two builders do no harm."""
    stub = (*([package.target] if package.target else ()), *package.info.withhold) if stubbed else ()
    digest = hashlib.sha256(f"{package.chapter}\0{stub}\0".encode())
    for name in steps.tree_files(package.chapter):
        digest.update(f"{name}\0".encode() + (ROOT / name).read_bytes())
    target = cache / digest.hexdigest()[:24]
    if not target.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=cache, prefix="building-"))
        try:
            steps.build(package.chapter, building, stub=stub)
            building.chmod(0o755)
            os.replace(building, target)
        except OSError:
            if not target.is_dir():  # another builder may have been first
                raise
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return target
