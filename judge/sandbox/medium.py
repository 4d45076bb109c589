"""Tier `medium`: for a container with Docker's default profile, where no namespace can be made.

The child keeps its uid. Landlock leaves it the libraries, the tree and the fakes to read and nothing to write, and scopes
signals and abstract sockets; the allow-list of system calls has no sockets, no ptrace, no way to make a process, and
signals to itself only. Since nothing may be written, no disk can be filled.

What it lacks beside `strong`: the uid is the judge's own; files and processes can be seen to exist, with their sizes and
times. The time at which a library's file was last read is one of these, so that a program can tell a later one something
by reading it: on a file system that is mounted noatime there is nothing to see.
"""

from __future__ import annotations

import errno
import os

from judge.sandbox import landlock, linux
from judge.sandbox.confine import Resources, View, limit_resources
from judge.sandbox.seccomp import Filter, own_signals_only

# The first version that scopes signals and abstract sockets.
SCOPING_ABI = 6
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


def enter_guard() -> None:
    """The guard stays where it is; it ends when the zygote does."""
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)


def enter_child(view: View, resources: Resources, rules: Filter, slot: int, root: bool) -> None:
    """Close the doors behind this process. Raises OSError, naming the call; ENOSYS where there is no Landlock."""
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)
    os.setsid()
    os.chdir(view.base)
    limit_resources(resources)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if root:
        linux.drop_capabilities()
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    if not landlock.abi():
        raise OSError(errno.ENOSYS, "this kernel has no Landlock")
    landlock.restrict([*view.binds, view.base, *(d for d in DEVICES if os.path.exists(d))], [])
    own_signals_only(os.getpid()).load()
    rules.load()


def children_at_once(wanted: int) -> int:
    """How many children may run beside each other: without scoping, one could signal or find another."""
    return wanted if landlock.abi() >= SCOPING_ABI else 1
