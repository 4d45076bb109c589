"""The program of tier `gpu`: one process, one submission. It loads torch and the kernels, waits until the GPU is its own,
zeroes its memory, shuts the doors and serves. Requests come on stdin, replies go to what was stdout."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

READABLE = ("/usr", "/lib", "/lib64", "/opt", "/proc", "/sys", "/etc/ld.so.cache", "/etc/localtime")
KEEP_FREE = 1 << 30  # bytes of device memory that are not zeroed: contexts and kernels' own


def main() -> None:
    options = json.loads(sys.argv[1])
    # Nothing is compiled behind the doors, and nothing is cached outside them.
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", CUDA_CACHE_DISABLE="1")
    replies = os.dup(1)
    os.dup2(2, 1)
    sys.path.insert(0, options["root"])
    import torch

    from judge.sandbox import child, seccomp, zygote

    torch.set_num_threads(1)
    for name in options["kernels"]:
        importlib.import_module(name)
    if options["cuda"]:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.zeros(1, device="cuda")
    driver = zygote.set_scene(options["scene"])
    filters = (seccomp.own_signals_only(os.getpid()), seccomp.build_deny_filter())
    os.write(replies, b"\x06\0\0\0ready\n")
    if not os.read(0, 1):
        return
    if options["cuda"]:
        scrub(torch)
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, (options["device_mb"] << 20) / total))
    confine(options, *filters)
    sys.path.remove(options["root"])
    os.environ.clear()
    os.write(replies, b"\x05\0\0\0shut\n")
    with contextlib.suppress(BrokenPipeError):  # the judge has seen enough
        child.serve(0, replies, driver)
    os._exit(0)


def scrub(torch: Any) -> None:
    """Zero what is free of the device's memory, so that nothing of the program before can be read."""
    held = []
    size = 8 << 30
    while size >= 64 << 20:
        free, _ = torch.cuda.mem_get_info()
        if free < size + KEEP_FREE:
            size //= 2
            continue
        try:
            held.append(torch.zeros(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size //= 2
    torch.cuda.synchronize()
    held.clear()
    torch.cuda.empty_cache()


def confine(options: dict[str, Any], *filters: Any) -> None:
    """Shut the doors. Raises OSError, naming the call; ENOSYS where neither an own uid nor Landlock can keep files apart."""
    import resource

    from judge.sandbox import landlock, linux
    from judge.sandbox.confine import no_core

    libraries = sorted({os.path.realpath(p) for p in (sys.prefix, sys.base_prefix)})
    own_uid = options["uid"] is not None and all(
        open_to_all(p) for p in (*libraries, *options["scene"]["paths"])
    )
    if not own_uid and not landlock.abi():
        raise OSError(
            errno.ENOSYS,
            "no Landlock, and no uid of its own: start as root, with libraries that all may read",
        )
    for kind, value in (
        (resource.RLIMIT_CORE, no_core()),
        (resource.RLIMIT_SIGPENDING, 64),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_CPU, options["cpu_s"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        resource.setrlimit(kind, (value, value))
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)
    os.chdir("/")
    if own_uid:  # and with root's uid go its capabilities
        os.setgroups([])
        os.setresgid(options["uid"], options["uid"], options["uid"])
        os.setresuid(options["uid"], options["uid"], options["uid"])
        linux.prctl(linux.PR_SET_PDEATHSIG, 9)  # a change of uid cleared it
    elif os.geteuid() == 0:
        linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    nodes = [f"/dev/{n}" for n in os.listdir("/dev") if n.startswith("nvidia")]
    basic = [f"/dev/{n}" for n in ("null", "zero", "urandom")]
    readable = [p for p in (*READABLE, *basic, *libraries, *options["scene"]["paths"]) if os.path.exists(p)]
    landlock.restrict(readable, nodes)
    for rules in filters:
        rules.load()


def open_to_all(path: str) -> bool:
    """Whether a stranger may read what is below `path`: every folder down to it can be passed."""
    place = Path(path)
    return all(p.stat().st_mode & 0o001 for p in (place, *place.parents))


if __name__ == "__main__":
    main()
