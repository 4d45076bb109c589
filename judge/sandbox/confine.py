"""What every tier confines a child to: what it sees, and what it may use."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """What a child sees: `binds` appear read-only under their own paths, `masks` (folders within them) appear empty."""

    binds: tuple[str, ...]
    masks: tuple[str, ...]
    base: str  # an empty folder, not above any bind, on which the new root is built
    work_mb: int = 16


@dataclass(frozen=True)
class Resources:
    """rlimits. `cpu_s` is the last resort behind the judge's own clock; `memory` is bytes above the size at fork."""

    cpu_s: int
    memory: int
    file_size: int = 8 << 20
    open_files: int = 64


def limit_resources(resources: Resources) -> None:
    """Set the rlimits of this process, soft and hard alike."""

    def limit(kind: int, value: int) -> None:
        resource.setrlimit(kind, (value, value))

    limit(resource.RLIMIT_CORE, no_core())
    # pid 1 of a namespace ignores SIGXCPU: soft and hard alike, so that the kernel kills at once.
    limit(resource.RLIMIT_CPU, resources.cpu_s)
    limit(resource.RLIMIT_FSIZE, resources.file_size)
    limit(resource.RLIMIT_NOFILE, resources.open_files)
    limit(resource.RLIMIT_MSGQUEUE, 0)
    limit(resource.RLIMIT_SIGPENDING, 64)  # counted by user, and the judge may be the same
    limit(resource.RLIMIT_MEMLOCK, 0)
    limit(resource.RLIMIT_STACK, 8 << 20)
    limit(resource.RLIMIT_AS, resources.memory)


def no_core() -> int:
    """The RLIMIT_CORE under which nothing is dumped: 1 byte, since 0 keeps no program away that dumps are piped to
    (core(5)); 0 where no more may be had."""
    return 0 if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 else 1


def library_paths(prefixes: Sequence[str]) -> tuple[str, ...]:
    """`prefixes` and the system's library folders, as far as they exist: real paths, none inside another."""
    wanted = [*prefixes, "/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64"]
    found = sorted({p for p in wanted if os.path.isdir(p) and not os.path.islink(p)})
    return tuple(p for p in found if not any(p != q and p.startswith(q + "/") for q in found))
