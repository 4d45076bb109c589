"""Which system calls a submission may make: an allow-list. Anything else fails with EPERM.

The filter is compiled once, in the zygote, by libseccomp; a child loads the finished program with one system call.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from typing import Any

from judge.sandbox import linux

SECCOMP_SET_MODE_FILTER = 1

# Memory, files that are already visible, time, own signals, threads' locks. Absent on purpose: every way to make a
# process or a thread, sockets, ptrace and process_vm_*, mounts and namespaces, io_uring, bpf, keys, memfd, chmod and
# links, changing limits, identities, times of files, or files by name (truncate: old Landlock does not know it); mincore,
# which tells what of a file others have read.
ALLOWED = """
read write readv writev pread64 pwrite64 close close_range fstat newfstatat stat lstat statx statfs fstatfs lseek
mmap munmap mprotect mremap madvise brk membarrier
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


# What tier `gpu` denies; CUDA's driver needs too much for an allow-list: threads, ioctls, mappings of its own. A process
# is made by fork, vfork or clone without CLONE_THREAD.
DENIED = """
fork vfork execve execveat socket socketpair bind listen accept accept4 connect
ptrace process_vm_readv process_vm_writev process_madvise pidfd_open pidfd_getfd pidfd_send_signal kcmp
mount umount2 move_mount fsopen fsmount open_tree pivot_root chroot unshare setns mount_setattr
bpf perf_event_open io_uring_setup io_uring_enter io_uring_register userfaultfd fanotify_init
keyctl add_key request_key init_module finit_module delete_module kexec_load reboot swapon swapoff
setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset personality
chmod fchmod fchmodat chown fchown lchown fchownat link linkat symlink symlinkat mknod mknodat
msgget msgsnd semget semop shmget shmat setrlimit sched_setaffinity setpriority ioprio_set
tkill rt_sigqueueinfo rt_tgsigqueueinfo sethostname setdomainname clock_settime settimeofday adjtimex
utime utimes utimensat futimesat memfd_create memfd_secret
""".split()  # noqa: SIM905
CLONE_THREAD = 0x10000


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
    return _compiled(rules)


def build_deny_filter() -> Filter:
    """Compile the deny-list of tier `gpu`: EPERM for what it names, all else goes."""
    import pyseccomp as seccomp

    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    refuse = seccomp.ERRNO(errno.EPERM)
    for name in DENIED:
        try:
            rules.add_rule(refuse, name)
        except (
            ValueError,
            RuntimeError,
            OSError,
        ):  # a call that this architecture or libseccomp does not know
            continue
    rules.add_rule(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, CLONE_THREAD, 0))
    rules.add_rule(refuse, "prlimit64", seccomp.Arg(2, seccomp.NE, 0))
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    return _compiled(rules)


def _compiled(rules: Any) -> Filter:
    with os.fdopen(os.memfd_create("filter"), "w+b", buffering=0) as file:
        rules.export_bpf(file)
        file.seek(0)
        return Filter(file.read())
