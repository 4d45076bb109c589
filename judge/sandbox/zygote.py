"""A process with torch loaded that does nothing but fork: the reason why a verdict takes milliseconds.

Started as a program by `client.Zygote`, with an empty environment and one socket. A request `stage` forks a second
zygote, which imports what one version of a problem shows (tree, fakes, driver) and then forks a guard and a child for
each submission. No zygote sees a submission, an answer, a user, a seed or a job.

Invariant: one thread. A child of a process whose OpenMP pool has started hangs in its first parallel region.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import sysconfig
import types
from typing import Any

MASKED_PACKAGES = ("minisgl", "sglang", "flashinfer", "sgl_kernel", "judge", "problems")
MESSAGE = 1 << 16


def _keep_one_thread(nthreads: int) -> None:
    """What `torch.set_num_threads` is in a child."""


def preload() -> None:
    """Import torch and what programs make it import later; touch common operators so that children share the pages."""
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    import torch

    torch.set_num_threads(1)
    a = torch.randn(8, 8)
    (a @ a).softmax(-1).cumsum(0)
    q = torch.randn(1, 2, 4, 8)
    torch.nn.functional.scaled_dot_product_attention(q, q, q, enable_gqa=True)
    layer = torch.nn.Linear(8, 8)
    layer(a).sum().backward()
    # The first optimizer imports torch._dynamo, which takes seconds: here, once, and not in a child.
    torch.optim.AdamW(layer.parameters()).step()
    # A child has one thread and may not make more. Programs that set a number, as notebooks do, go on with one; torch
    # itself would end the process.
    torch.set_num_threads = torch.set_num_interop_threads = _keep_one_thread
    torch.func.vmap(lambda row: row * 2)(a)
    for name in ("dataclasses", "enum", "heapq", "bisect", "itertools", "functools", "statistics", "random"):
        importlib.import_module(name)


def assert_single_threaded() -> None:
    threads = os.listdir("/proc/self/task")
    if len(threads) != 1:
        raise RuntimeError(f"a zygote must have one thread, this has {len(threads)}")


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    options = json.loads(sys.argv[2])
    root = options["root"]
    sys.path.insert(0, root)
    preload()
    # Not all are used here: children need them, and their files are hidden from these.
    from judge.sandbox import child, confine, medium, pages, seccomp, strong  # noqa: F401

    rules = {"strong": seccomp.build_filter(), "medium": seccomp.build_filter(writes=False)}
    sys.path.remove(root)
    os.environ.clear()
    assert_single_threaded()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for second zygotes
    gc.collect()
    gc.freeze()
    pages.collapse()
    control.send(json.dumps({"ready": True}).encode())
    while True:
        message, fds, _, _ = socket.recv_fds(control, MESSAGE, 1)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            stage(socket.socket(fileno=fds[0]), json.loads(message), rules, options["base"])
            os._exit(0)
        for fd in fds:
            os.close(fd)


def stage(control: socket.socket, scene: dict[str, Any], rules: dict[str, Any], base: str) -> None:
    """A second zygote: import what the problem shows, then fork for each submission. `rules`: a tier's filter."""
    from judge.sandbox import confine, linux, medium, strong

    linux.prctl(linux.PR_SET_PDEATHSIG, 9)
    try:
        driver = set_scene(scene)
        assert_single_threaded()
    except BaseException as error:  # noqa: BLE001  reported: a package that cannot be staged is the author's to mend
        control.send(json.dumps({"error": f"{type(error).__name__}: {error}"[:2000]}).encode())
        return
    stdlib = {sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")}
    binds = confine.library_paths([*stdlib, os.path.join(sys.base_prefix, "lib"), *scene["paths"]])
    masks = tuple(
        path
        for site in {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}
        for name in MASKED_PACKAGES
        if os.path.isdir(path := os.path.join(site, name))
    )
    view = confine.View(binds, masks, base)
    tier = {"strong": strong, "medium": medium}[scene["tier"]]
    gc.collect()
    gc.freeze()
    control.send(json.dumps({"ready": True, "private_mb": private_mb()}).encode())
    while True:
        message, fds, _, _ = socket.recv_fds(control, MESSAGE, 4)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            guard(json.loads(message), fds, driver, tier, view, rules[scene["tier"]])
            os._exit(0)
        for fd in fds:
            os.close(fd)


def private_mb() -> float:
    """Megabytes of this process that no other shares: what it costs to keep."""
    with open("/proc/self/smaps_rollup") as file:
        return (
            sum(int(line.split()[1]) for line in file if line.startswith(("Private_Clean", "Private_Dirty")))
            / 1024
        )


def set_scene(scene: dict[str, Any]) -> types.ModuleType | None:
    """Put the problem's folders on the path, import its modules and its driver (as text: its file stays hidden)."""
    sys.path[:0] = scene["paths"]
    sys.dont_write_bytecode = True
    for name in scene["modules"]:
        importlib.import_module(name)
    if not scene["driver"]:
        return None
    driver = types.ModuleType("driver")
    driver.__file__ = "driver.py"
    sys.modules["driver"] = driver
    exec(compile(scene["driver"], "driver.py", "exec"), driver.__dict__)
    return driver


def guard(
    request: dict[str, Any],
    fds: list[int],
    driver: types.ModuleType | None,
    tier: Any,
    view: Any,
    rules: Any,
) -> None:
    """Fork the child into its namespaces, wait for it, and report how it ended. Runs no line of a submission."""
    requests, replies, output, status = fds
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    root = os.geteuid() == 0

    def report(data: dict[str, Any]) -> None:
        os.write(status, json.dumps(data).encode() + b"\n")

    try:
        tier.enter_guard()
        failed, setup = os.pipe()
        pid = os.fork()
    except OSError as error:
        report({"setup_error": str(error)})
        return
    if pid == 0:
        run_child(request, (requests, replies, output), setup, driver, tier, view, rules, root)
        os._exit(0)
    for fd in (requests, replies, output, setup):
        os.close(fd)
    report({"pid": pid})
    select.select([failed], [], [], 10.0)
    problem = os.read(failed, 4096)
    if problem:
        report({"setup_error": problem.decode("utf-8", "replace")})
    _, wait_status, usage = os.wait4(pid, 0)
    report({"exit": os.waitstatus_to_exitcode(wait_status), "cpu_s": usage.ru_utime + usage.ru_stime})


def run_child(
    request: dict[str, Any],
    fds: tuple[int, int, int],
    setup: int,
    driver: types.ModuleType | None,
    tier: Any,
    view: Any,
    rules: Any,
    root: bool,
) -> None:
    """The child: arrange the file descriptors, close the doors, serve. `setup` closes when the doors are shut."""
    from judge.sandbox import child, confine

    try:
        null = os.open("/dev/null", os.O_RDONLY)
        # Out of the way first: the final numbers may be in use by each other.
        high = [os.dup2(fd, 200 + i) for i, fd in enumerate((null, fds[2], fds[2], fds[0], fds[1], setup))]
        for number, fd in enumerate(high):
            os.dup2(fd, number, inheritable=False)
        os.closerange(6, 256)
        setup = 5
        with open("/proc/self/statm") as file:
            size_now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resources = confine.Resources(request["cpu_s"], size_now + request["memory"])
        tier.enter_child(view, resources, rules, request["slot"], root)
    except BaseException as error:  # noqa: BLE001  reported: no submission runs behind a half-closed door
        os.write(setup, f"{type(error).__name__}: {error}"[:2000].encode())
        os._exit(1)
    os.close(setup)
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    with contextlib.suppress(BrokenPipeError):  # the judge has seen enough
        child.serve(3, 4, driver)
    os._exit(0)


if __name__ == "__main__":
    main()
