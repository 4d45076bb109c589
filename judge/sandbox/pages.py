"""Huge pages for the memory that a zygote's children share: a fork copies one entry for 2 MB instead of 512, and an end
takes one apart. With torch loaded that is most of what a child costs.

Source: madvise(2), MADV_COLLAPSE (Linux 6.1). It needs no right, asks nothing of the system's setting for huge pages but
that the kernel has them, and works at once. A page that a child writes to is still copied as 4 kB.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from judge.sandbox.linux import libc

MADV_COLLAPSE = 25
SIZE_FILE = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")


def collapse() -> None:
    """Put this process's anonymous memory into huge pages as far as it fills them. What the kernel refuses, a range that may
    not lie in them or all of it on one that is too old, stays as it was: it is slower, nothing else."""
    if not SIZE_FILE.exists():
        return
    size = int(SIZE_FILE.read_text())
    for low, high in _anonymous():
        start, end = -(-low // size) * size, high // size * size
        if start < end:
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_COLLAPSE)


def _anonymous() -> list[tuple[int, int]]:
    """Ranges of memory that no file stands behind and that may be written, but for the stack."""
    found = []
    for row in Path("/proc/self/maps").read_text().splitlines():
        fields = row.split()
        span, rights, inode, name = fields[0], fields[1], fields[4], fields[5:]
        if inode == "0" and rights.startswith("rw") and not (name and name[0] == "[stack]"):
            low, high = (int(part, 16) for part in span.split("-"))
            found.append((low, high))
    return found
