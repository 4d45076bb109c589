"""The system calls of Linux that Python 3.11 does not offer, by ctypes. All raise OSError with the call's name."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 2

AT_FDCWD = -100
AT_RECURSIVE = 0x8000
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_NO_NEW_PRIVS = 38
# NOROOT, NO_SETUID_FIXUP and KEEP_CAPS off, each locked; capabilities(7).
SECUREBITS_LOCKED = 0x2F

# Numbers of system calls that glibc 2.36 has no wrapper for.
_NUMBERS = {
    "x86_64": {"pivot_root": 155, "capset": 126, "seccomp": 317},
    "aarch64": {"pivot_root": 41, "capset": 91, "seccomp": 277},
}
_COMMON = {
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}


def number(name: str) -> int:
    """The number of a system call on this machine. Raises OSError(ENOSYS) on an unknown architecture."""
    table = _NUMBERS.get(platform.machine())
    if table is None:
        raise OSError(errno.ENOSYS, f"no system call table for {platform.machine()}")
    return (table | _COMMON)[name]


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def syscall(name: str, *args: object) -> int:
    return _check(libc.syscall(ctypes.c_long(number(name)), *args), name)


def unshare(flags: int) -> None:
    _check(libc.unshare(flags), f"unshare({flags:#x})")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    def text(s: str | None) -> bytes | None:
        return None if s is None else os.fsencode(s)

    result = libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data))
    _check(result, f"mount({source} on {target}, {flags:#x})")


def unmount(target: str, flags: int) -> None:
    _check(libc.umount2(os.fsencode(target), flags), f"umount2({target})")


def pivot_root(new: str, old: str) -> None:
    syscall("pivot_root", ctypes.c_char_p(os.fsencode(new)), ctypes.c_char_p(os.fsencode(old)))


def set_mount_readonly(path: str) -> None:
    """Make a mount and all below it read-only, nosuid, nodev: mount_setattr(2), Linux 5.12. Locked flags stay."""
    attributes = struct.pack("=QQQQ", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, 0, 0)
    syscall(
        "mount_setattr",
        ctypes.c_int(AT_FDCWD),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.c_uint(AT_RECURSIVE),
        ctypes.c_char_p(attributes),
        ctypes.c_size_t(len(attributes)),
    )


def prctl(option: int, value: int = 0) -> None:
    zero = ctypes.c_ulong(0)
    _check(libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero), f"prctl({option}, {value})")


def drop_capabilities() -> None:
    """Empty the bounding set, lock the securebits, clear all capability sets."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno != errno.EINVAL:  # the first number the kernel doesn't know ends the list
                raise
            break
    prctl(PR_SET_SECUREBITS, SECUREBITS_LOCKED)
    header = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
    syscall("capset", ctypes.c_char_p(header), ctypes.c_char_p(bytes(24)))


def cpu_clock(pid: int) -> int:
    """The id of another process's CPU clock, for time.clock_gettime: clock_getcpuclockid(3), CPUCLOCK_SCHED."""
    return (~pid << 3) | 2
