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
# What stands in the place of a file that the submission brings.
ABSENT = 'raise NotImplementedError("this file is the submission\'s")\n'


def tree_of(package: Package, *, stubbed: bool, cache: Path = CACHE) -> Path:
    """The folder of the problem's chapter: for submissions with the target and everything withheld stubbed, for
    references whole. Built on first use; named by its content, so that two builders do no harm."""
    target, stub, replaced = package.target, list(package.info.withhold), dict[str, str]()
    if target and package.kind == "file":
        replaced = {target: ABSENT}
    elif target:
        stub.insert(0, target)
    if not stubbed:
        stub, replaced = [], {}
    digest = hashlib.sha256(f"{package.chapter}\0{stub}\0{replaced}\0".encode())
    for name in steps.tree_files(package.chapter):
        digest.update(f"{name}\0".encode() + (ROOT / name).read_bytes())
    folder = cache / digest.hexdigest()[:24]
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=cache, prefix="building-"))
        try:
            steps.build(package.chapter, building, replace=replaced, stub=stub)
            building.chmod(0o755)
            os.replace(building, folder)
        except OSError:
            if not folder.is_dir():  # another builder may have been first
                raise
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return folder
