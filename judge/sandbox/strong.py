"""Tier `strong`: a process that has its own user, pid, mount, network, ipc and uts namespaces, a root of read-only
binds with one small tmpfs, no /proc, no capabilities, an allow-list of system calls, and Landlock where there is any.

Two processes take part. The guard (`enter_guard`) is ours: it makes the pid namespace, forks, waits, reports. The
child (`enter_child`) is pid 1 of that namespace and runs the submission.

As root, mounts are made first, with real privileges (so that a tree below a folder closed to others can be bound);
then the child becomes an unused uid and enters a user namespace that maps nobody. As an ordinary user, the user
namespace comes first and gives the right to mount.
"""

from __future__ import annotations

import os
import socket

from judge.sandbox import landlock, linux
from judge.sandbox.confine import Resources, View, limit_resources
from judge.sandbox.seccomp import Filter, own_signals_only

WORK = "/box"  # a name that no bind has as its beginning
DEVICES = ("null", "zero", "urandom")
FIRST_UID = 61_000  # unused by Debian's and Docker's ranges; one for each child that may run at once


def enter_guard() -> None:
    """First half, in the guard: after it, the next fork is pid 1 of a new pid namespace."""
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)
    if os.geteuid() == 0:
        linux.unshare(linux.CLONE_NEWPID)
        return
    uid, gid = os.getuid(), os.getgid()
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # else /proc/self/uid_map belongs to root and cannot be written
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWPID)
    for name, text in (("setgroups", "deny"), ("uid_map", f"65534 {uid} 1"), ("gid_map", f"65534 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter_child(view: View, resources: Resources, rules: Filter, slot: int, root: bool) -> None:
    """Second half, in the child: after it, nothing outside can be reached. Raises OSError, naming the call.

    `root`: whether the zygote runs as root. `slot`: a number no other running child has.
    """
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)
    os.setsid()
    linux.unshare(
        linux.CLONE_NEWNS
        | linux.CLONE_NEWNET
        | linux.CLONE_NEWIPC
        | linux.CLONE_NEWUTS
        | linux.CLONE_NEWCGROUP
    )
    socket.sethostname("judge")
    uid = FIRST_UID + slot if root else None
    _build_root(view, uid)
    limit_resources(resources)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        linux.unshare(linux.CLONE_NEWUSER)  # full capabilities in a namespace that maps nobody; dropped below
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)  # a change of uid cleared it
    landlock.restrict(["/"], [WORK])
    own_signals_only(os.getpid()).load()
    rules.load()


def _build_root(view: View, uid: int | None) -> None:
    base = view.base
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", base, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,nr_inodes=4000,mode=755")
    os.mkdir(f"{base}/.old")
    for path in view.binds:
        target = base + path
        os.makedirs(target, exist_ok=True)
        linux.mount(path, target, None, linux.MS_BIND | linux.MS_REC)
        linux.set_mount_readonly(target)
    for path in view.masks:
        linux.mount(
            "tmpfs", base + path, "tmpfs", linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV, "size=4k"
        )
    for link in ("lib", "lib64"):  # the dynamic loader is found by these on merged-/usr systems
        if os.path.islink(f"/{link}") and not os.path.lexists(f"{base}/{link}"):
            os.symlink(os.readlink(f"/{link}"), f"{base}/{link}")
    os.makedirs(f"{base}/dev", exist_ok=True)
    for name in DEVICES:
        open(f"{base}/dev/{name}", "w").close()
        linux.mount(f"/dev/{name}", f"{base}/dev/{name}", None, linux.MS_BIND)
    os.mkdir(base + WORK)
    linux.mount(
        "tmpfs",
        base + WORK,
        "tmpfs",
        linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC,
        f"size={view.work_mb}m,nr_inodes=256,mode=700",
    )
    if uid is not None:
        os.chown(base + WORK, uid, uid)
    # A checkout may lie below /tmp, /dev/shm or anywhere: what a bind has made is left as it is.
    if not os.path.lexists(f"{base}/tmp"):
        os.symlink(WORK[1:], f"{base}/tmp")
    linux.pivot_root(base, f"{base}/.old")
    os.chdir("/")
    linux.unmount("/.old", linux.MNT_DETACH)
    os.rmdir("/.old")
    linux.mount(
        None,
        "/",
        None,
        linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV,
    )
    os.chdir(WORK)
