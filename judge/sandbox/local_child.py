"""The program of tier `local`: one process, one submission, on any system that runs Python. It sets what limits the
system offers and claims no isolation. Requests come on stdin, replies go to what was stdout; prints go to stderr."""

from __future__ import annotations

import contextlib
import json
import os
import sys


def main() -> None:
    options = json.loads(sys.argv[1])
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    replies = os.dup(1)
    os.dup2(2, 1)
    sys.path.insert(0, options["root"])
    import torch

    from judge.sandbox import child, zygote

    torch.set_num_threads(1)
    driver = zygote.set_scene(options["scene"])
    sys.path.remove(options["root"])
    limit(options["memory"], options["cpu_s"])
    os.write(replies, b"\x06\0\0\0ready\n")
    with contextlib.suppress(BrokenPipeError):  # the judge has seen enough
        child.serve(0, replies, driver)
    os._exit(0)


def limit(memory: int, cpu_s: int) -> None:
    """rlimits, where the system has them. macOS knows RLIMIT_AS and ignores it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    from judge.sandbox.confine import no_core

    resource.setrlimit(resource.RLIMIT_CORE, (no_core(), no_core()))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))


if __name__ == "__main__":
    main()
