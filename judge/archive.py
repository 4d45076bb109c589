"""Problem packages by their hash, kept for as long as a submission names one: a queued submission is judged by the version
that its author saw, and any verdict can be replayed from (version, seed)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from judge.packages import Package, PackageError, load_package


class Archive:
    """A folder of packages, each in a folder named after its version. Written once, never changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, package: Package) -> None:
        """Store a package, unless this version is there already."""
        target = self.folder / package.version
        if target.is_dir():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=self.folder, prefix=".building-"))
        try:
            for name, data in package.files.items():
                path = building / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            os.replace(building, target)
        except OSError:
            if not target.is_dir():  # another process may have been first
                raise
        finally:
            shutil.rmtree(building, ignore_errors=True)

    def load(self, version: str) -> Package:
        """The package of a version. Raises PackageError if it was never kept, or was tampered with."""
        folder = self.folder / version
        if not folder.is_dir():
            raise PackageError(folder, "this version of the problem was not kept here")
        package = load_package(folder)
        if package.version != version:
            raise PackageError(folder, f"holds version {package.version}: its files were changed")
        return package
