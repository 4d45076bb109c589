"""Which system calls a submission may make: an allow-list. Anything else fails with EPERM.

The filter is compiled once, in the zygote, by libseccomp; a child loads the finished program with one system call.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from judge.sandbox import linux

SECCOMP_SET_MODE_FILTER = 1

# Memory, files that are already visible, time, own signals, threads' locks. Absent on purpose: every way to make a
# process or a thread, sockets, ptrace and process_vm_*, mounts and namespaces, io_uring, bpf, keys, memfd, chmod and
# links, changing limits, identities, times of files, or files by name (truncate: old Landlock does not know it).
ALLOWED = """
read write readv writev pread64 pwrite64 close close_range fstat newfstatat stat lstat statx statfs fstatfs lseek
mmap munmap mprotect mremap madvise brk mincore membarrier
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending sigaltstack kill tgkill
access faccessat faccessat2 open openat creat readlink readlinkat getdents64 getcwd chdir umask
rename renameat renameat2 mkdir mkdirat rmdir unlink unlinkat fsync fdatasync ftruncate
pipe pipe2 dup dup2 dup3 select pselect6 poll ppoll epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2
copy_file_range sendfile
gettimeofday time clock_gettime clock_getres clock_nanosleep nanosleep alarm getitimer setitimer restart_syscall
getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp getpgid getsid
getrusage times sysinfo uname getrlimit sched_yield sched_getaffinity sched_getparam sched_getscheduler getcpu
futex set_robust_list get_robust_list rseq set_tid_address arch_prctl getrandom exit exit_group
""".split()  # noqa: SIM905  a table reads better

# ioctl: TCGETS, FIONREAD, FIOCLEX, FIONCLEX, TIOCGWINSZ: what isatty and subprocess-free Python asks of its own fds.
IOCTLS = (0x5401, 0x541B, 0x5451, 0x5450, 0x5413)
# fcntl: dup, flags, F_DUPFD_CLOEXEC, F_GETPIPE_SZ, seals. No F_SETOWN and F_SETSIG: they send signals. No locks: they
# belong to the file, which other runs see too, and can carry what a hidden case held.
FCNTLS = (0, 1, 2, 3, 4, 1030, 1032, 1033, 1034)


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


class Filter:
    """A compiled filter. Invariant: `_code` outlives `_program`, which points into it."""

    def __init__(self, code: bytes) -> None:
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = Program(len(code) // 8, ctypes.addressof(self._code))

    def load(self) -> None:
        """Put this process under the filter, for good. Needs no_new_privs."""
        linux.syscall(
            "seccomp", ctypes.c_uint(SECCOMP_SET_MODE_FILTER), ctypes.c_uint(0), ctypes.byref(self._program)
        )


def own_signals_only(pid: int) -> Filter:
    """A filter that stacks on the other: kill and tgkill only with this process as their first argument (`pid` as
    the process itself knows it), EPERM otherwise. Written out, since a pid is known only here."""
    kill, tgkill = {"x86_64": (62, 234), "aarch64": (129, 131)}[platform.machine()]
    load, equal, give = 0x20, 0x15, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EPERM
    # struct seccomp_data: nr at 0, args[0] at 16 (low half first on both little-endian machines).
    program = [
        (load, 0, 0, 0),
        (equal, 1, 0, kill),
        (equal, 0, 4, tgkill),
        (load, 0, 0, 16),
        (equal, 0, 3, pid),
        (load, 0, 0, 20),
        (equal, 0, 1, 0),
        (give, 0, 0, allow),
        (give, 0, 0, refuse),
    ]
    return Filter(b"".join(struct.pack("=HBBI", *line) for line in program))


def build_filter() -> Filter:
    """Compile the allow-list for this architecture; calls of another ABI (32-bit, x32) kill the process."""
    import pyseccomp as seccomp

    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for name in ALLOWED:
        try:
            rules.add_rule(seccomp.ALLOW, name)
        except (
            ValueError,
            RuntimeError,
            OSError,
        ):  # a call that this architecture does not have (open on aarch64)
            continue
    for request in IOCTLS:
        rules.add_rule(seccomp.ALLOW, "ioctl", seccomp.Arg(1, seccomp.EQ, request))
    for command in FCNTLS:
        rules.add_rule(seccomp.ALLOW, "fcntl", seccomp.Arg(1, seccomp.EQ, command))
    # Reading one's own limits is harmless (new_limit is NULL); setting them is not.
    rules.add_rule(seccomp.ALLOW, "prlimit64", seccomp.Arg(0, seccomp.EQ, 0), seccomp.Arg(2, seccomp.EQ, 0))
    # clone3 hides its flags from a filter: ENOSYS makes glibc fall back to clone, which the list lacks.
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    with os.fdopen(os.memfd_create("filter"), "w+b", buffering=0) as file:
        rules.export_bpf(file)
        file.seek(0)
        return Filter(file.read())
