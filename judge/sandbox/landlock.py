"""Landlock: a second fence around files, independent of mounts. Used where the kernel has it."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from judge.sandbox import linux

CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1
# linux/landlock.h: rights a kernel of ABI n handles; ABI 4 adds TCP, ABI 6 the scoping of signals and sockets.
FS_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
FS_RIGHTS_ABI5 = (1 << 16) - 1
READ = (1 << 2) | (1 << 3)
FILE_RIGHTS = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)  # execute, write, read, truncate, ioctl
EXECUTE, MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << n for n in (0, 6, 9, 10, 11, 12))


def abi() -> int:
    """The kernel's Landlock version; 0 if it has none."""
    try:
        return linux.syscall(
            "landlock_create_ruleset",
            ctypes.c_void_p(None),
            ctypes.c_size_t(0),
            ctypes.c_uint(CREATE_RULESET_VERSION),
        )
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
            return 0
        raise


def restrict(read_only: list[str], writable: list[str]) -> None:
    """Confine this process to reading below `read_only` and to plain files and folders below `writable`, without
    TCP, and (ABI >= 6) without signals or abstract sockets to processes outside. Needs no_new_privs."""
    version = abi()
    if not version:
        return
    handled = FS_RIGHTS.get(version, FS_RIGHTS_ABI5)
    attributes = struct.pack("=QQQ", handled, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    attributes = attributes[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = linux.syscall(
        "landlock_create_ruleset",
        ctypes.c_char_p(attributes),
        ctypes.c_size_t(len(attributes)),
        ctypes.c_uint(0),
    )
    write = handled & ~(EXECUTE | MAKE_CHAR | MAKE_SOCK | MAKE_FIFO | MAKE_BLOCK | MAKE_SYM)
    try:
        for paths, rights in ((read_only, READ), (writable, write)):
            for path in paths:
                # Rights about folders cannot be given on a file: EINVAL.
                of_file = rights if os.path.isdir(path) else rights & FILE_RIGHTS
                _allow(ruleset, path, of_file & handled)
        linux.syscall("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, fd)
        linux.syscall(
            "landlock_add_rule",
            ctypes.c_int(ruleset),
            ctypes.c_int(RULE_PATH_BENEATH),
            ctypes.c_char_p(rule),
            ctypes.c_uint(0),
        )
    finally:
        os.close(fd)
