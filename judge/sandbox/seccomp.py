"""Which system calls a submission may make: an allow-list. Anything else fails with EPERM.

The filter is compiled once, in the zygote, by libseccomp; a child loads the finished program with one system call.
"""

from __future__ import annotations

import contextlib
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
mmap munmap mprotect mremap brk membarrier
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending sigaltstack kill tgkill
access faccessat faccessat2 readlink readlinkat getdents64 getcwd chdir umask fsync fdatasync
pipe pipe2 dup dup2 dup3 select pselect6 poll ppoll epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2
copy_file_range sendfile
gettimeofday time clock_getres nanosleep alarm getitimer setitimer restart_syscall
getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp getpgid getsid
getrusage times sysinfo uname getrlimit sched_yield sched_getaffinity sched_getparam sched_getscheduler getcpu
set_robust_list get_robust_list rseq set_tid_address arch_prctl getrandom exit exit_group
""".split()  # noqa: SIM905  a table reads better

# With the numbers of clocks that are the system's or one's own: a negative number is the CPU clock of any process.
CLOCKED = ("clock_gettime", "clock_nanosleep")
CLOCKS = 16

# Locks of this process alone: a lock that lies in a file's page is found by whoever else has that file, and who waits on it
# tells them a bit. PRIVATE is a flag of futex's second argument.
FUTEX_PRIVATE = 128
# What may be asked for memory: nothing that moves pages of files, which other runs see by the time that reading takes. From
# MADV_NORMAL to MADV_DONTNEED, MADV_FREE, and from MADV_HUGEPAGE to MADV_DODUMP.
ADVICES = (0, 1, 2, 3, 4, 8, 14, 15, 16, 17)

# Where a child has a place to write (tier `strong`, on a file system of its own). Elsewhere Landlock refuses to write, but
# old ones let a file be cut to nothing by opening it: there, open must neither make nor cut.
WRITING = "open openat creat rename renameat renameat2 mkdir mkdirat rmdir unlink unlinkat ftruncate".split()  # noqa: SIM905
READING = (("open", 1), ("openat", 2))  # and which argument has the flags
O_CREAT, O_TRUNC, O_ACCMODE = 0o100, 0o1000, 0o3

# ioctl: TCGETS, FIONREAD, FIOCLEX, FIONCLEX, TIOCGWINSZ: what isatty and subprocess-free Python asks of its own fds.
IOCTLS = (0x5401, 0x541B, 0x5451, 0x5450, 0x5413)
# fcntl: dup, flags, F_DUPFD_CLOEXEC, F_GETPIPE_SZ, seals. No F_SETOWN and F_SETSIG: they send signals. No locks: they
# belong to the file, which other runs see too, and can carry what a hidden case held.
FCNTLS = (0, 1, 2, 3, 4, 1030, 1032, 1033, 1034)


# What tier `gpu` denies; CUDA's driver needs too much for an allow-list: threads, ioctls, mappings of its own. A process
# is made by fork, vfork or clone without CLONE_THREAD. Without a uid of its own a submission owns files that it may not
# write, and Landlock knows nothing of modes, attributes, locks and queues, nor do old ones of lengths: what outlives a
# run, or tells of another, is on this list. CUDA's driver may leave a socket of its own open: it is silent from then on.
DENIED = """
fork vfork execve execveat socket socketpair bind listen accept accept4 connect shutdown setsockopt
sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg
ptrace process_vm_readv process_vm_writev process_madvise pidfd_open pidfd_getfd pidfd_send_signal kcmp
mount umount2 move_mount fsopen fsmount open_tree pivot_root chroot unshare setns mount_setattr
bpf perf_event_open io_uring_setup io_uring_enter io_uring_register userfaultfd fanotify_init
keyctl add_key request_key init_module finit_module delete_module kexec_load reboot swapon swapoff
setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset personality
chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat link linkat symlink symlinkat mknod mknodat
setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
creat mkdir mkdirat rename renameat renameat2 rmdir unlink unlinkat truncate ftruncate fallocate flock
msgget msgsnd msgrcv msgctl semget semop semtimedop semctl shmget shmat shmctl
mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
setrlimit sched_setaffinity sched_setscheduler sched_setparam sched_setattr setpriority ioprio_set
tkill rt_sigqueueinfo rt_tgsigqueueinfo sethostname setdomainname clock_settime settimeofday adjtimex
utime utimes utimensat futimesat memfd_create memfd_secret
cachestat mincore fadvise64 readahead inotify_init inotify_init1 inotify_add_watch
io_setup move_pages migrate_pages process_mrelease open_by_handle_at acct quotactl quotactl_fd syslog kexec_file_load
""".split()  # noqa: SIM905
# Calls that libseccomp may be too old to know by name; their numbers are the same on every architecture.
DENIED_NUMBERS = {"setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467, "file_setattr": 469}
CLONE_THREAD = 0x10000
RWF_NOWAIT = 8  # preadv2: only what is in memory already, which others have read
# open: what makes a file, cuts one, or asks for neither reading nor writing, to which Landlock has no objection.
DENIED_OPENS = (O_CREAT, O_TRUNC, O_ACCMODE)
# fcntl: locks, those of open files, leases, owners and signals of descriptors, notes about folders.
DENIED_FCNTLS = (5, 6, 7, 8, 10, 15, 36, 37, 38, 1024, 1026)
# ioctl: FS_IOC_SETFLAGS and its 32-bit form, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC_ENABLE_VERITY; TIOCSTI, TIOCLINUX.
DENIED_IOCTLS = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40806685, 0x5412, 0x541C)
# prctl: PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_PTRACER: what the judge has set, and who may look in.
DENIED_PRCTLS = (1, 4, 0x59616D61)


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


def build_filter(*, writes: bool = True) -> Filter:
    """Compile the allow-list for this architecture; calls of another ABI (32-bit, x32) kill the process. `writes`: whether
    the child has a place where it may make files."""
    import pyseccomp as seccomp

    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for name, at in READING if not writes else ():
        with contextlib.suppress(ValueError, RuntimeError, OSError):  # aarch64 has no open
            rules.add_rule(seccomp.ALLOW, name, seccomp.Arg(at, seccomp.MASKED_EQ, O_CREAT | O_TRUNC, 0))
    for name in (*ALLOWED, *(WRITING if writes else ())):
        try:
            rules.add_rule(seccomp.ALLOW, name)
        except (
            ValueError,
            RuntimeError,
            OSError,
        ):  # a call that this architecture does not have (open on aarch64)
            continue
    for name in CLOCKED:
        rules.add_rule(seccomp.ALLOW, name, seccomp.Arg(0, seccomp.LT, CLOCKS))
    rules.add_rule(seccomp.ALLOW, "futex", seccomp.Arg(1, seccomp.MASKED_EQ, FUTEX_PRIVATE, FUTEX_PRIVATE))
    for advice in ADVICES:
        rules.add_rule(seccomp.ALLOW, "madvise", seccomp.Arg(2, seccomp.EQ, advice))
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
    for number in DENIED_NUMBERS.values():
        rules.add_rule(refuse, number)
    rules.add_rule(refuse, "preadv2", seccomp.Arg(5, seccomp.MASKED_EQ, RWF_NOWAIT, RWF_NOWAIT))
    for name in CLOCKED:
        rules.add_rule(refuse, name, seccomp.Arg(0, seccomp.GE, CLOCKS))
    rules.add_rule(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, CLONE_THREAD, 0))
    rules.add_rule(refuse, "prlimit64", seccomp.Arg(2, seccomp.NE, 0))
    for flags in DENIED_OPENS:
        for name, at in READING:
            with contextlib.suppress(ValueError, RuntimeError, OSError):  # aarch64 has no open
                rules.add_rule(refuse, name, seccomp.Arg(at, seccomp.MASKED_EQ, flags, flags))
    for name, denied in (("fcntl", DENIED_FCNTLS), ("ioctl", DENIED_IOCTLS)):
        for command in denied:
            rules.add_rule(refuse, name, seccomp.Arg(1, seccomp.EQ, command))
    for option in DENIED_PRCTLS:
        rules.add_rule(refuse, "prctl", seccomp.Arg(0, seccomp.EQ, option))
    for hidden in ("clone3", "openat2"):  # their flags lie in memory, where a filter cannot look
        rules.add_rule(seccomp.ERRNO(errno.ENOSYS), hidden)
    return _compiled(rules)


def _compiled(rules: Any) -> Filter:
    with os.fdopen(os.memfd_create("filter"), "w+b", buffering=0) as file:
        rules.export_bpf(file)
        file.seek(0)
        return Filter(file.read())
