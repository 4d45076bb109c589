#!/usr/bin/env python3
"""Writes docker/seccomp-strong.json: the container profile under which tier `strong` works.

An allow-list for the whole container, web server and worker included: what Python, torch and SQLite need, and beside it
what a child needs to close the doors behind itself: unshare, mount, mount_setattr, umount2, pivot_root, setns,
sethostname, and clone with namespace flags. A submission's own list (judge/sandbox/seccomp.py) is far shorter.
"""

import json
from pathlib import Path

FILES = """
read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 open openat openat2 creat close close_range
stat lstat fstat newfstatat statx statfs fstatfs lseek access faccessat faccessat2 readlink readlinkat getdents getdents64
getcwd chdir fchdir rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat symlink symlinkat
chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat umask utime utimes utimensat futimesat
truncate ftruncate fallocate fadvise64 readahead fsync fdatasync sync syncfs sync_file_range flock
copy_file_range sendfile splice tee vmsplice ioctl fcntl dup dup2 dup3 pipe pipe2 memfd_create
getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr removexattr
inotify_init inotify_init1 inotify_add_watch inotify_rm_watch mknod mknodat
"""
MEMORY = """
mmap munmap mprotect mremap madvise brk mincore mlock munlock mlock2 msync membarrier get_mempolicy
pkey_alloc pkey_free pkey_mprotect
shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
"""
PROCESSES = """
clone fork vfork execve execveat exit exit_group wait4 waitid kill tgkill tkill pidfd_open pidfd_send_signal
getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp getpgid getsid setsid setpgid
setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capget capset prctl arch_prctl personality
getrlimit setrlimit prlimit64 getrusage times getpriority setpriority ioprio_get ioprio_set
sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler sched_setscheduler
sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_getattr sched_setattr getcpu
futex futex_waitv set_robust_list get_robust_list rseq set_tid_address restart_syscall uname sysinfo
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack
pause
seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self
"""
TIME = """
gettimeofday time clock_gettime clock_getres clock_nanosleep nanosleep alarm getitimer setitimer
timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime
"""
NETWORK = """
socket socketpair bind listen accept accept4 connect getsockname getpeername getsockopt setsockopt shutdown
sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait
epoll_pwait epoll_pwait2 eventfd eventfd2 signalfd signalfd4 getrandom
"""
DOORS = "unshare mount mount_setattr umount2 pivot_root setns sethostname"


def profile() -> dict:
    names = " ".join((FILES, MEMORY, PROCESSES, TIME, NETWORK, DOORS)).split()
    assert len(names) == len(set(names)), "a name twice"
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": [
            {"names": sorted(names), "action": "SCMP_ACT_ALLOW"},
            # A filter cannot see clone3's flags: ENOSYS makes glibc fall back to clone.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
        ],
    }


if __name__ == "__main__":
    target = Path(__file__).with_name("seccomp-strong.json")
    target.write_text(json.dumps(profile(), indent=1) + "\n")
