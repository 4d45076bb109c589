"""A checkout may lie anywhere: below /tmp, below a folder closed to others, below one of the names that the new root has."""

import os
import tempfile
from pathlib import Path

import pytest

from judge.core import frames
from judge.sandbox.client import Scene, Zygote
from judge.sandbox.process import ChildLimits, Reply

LIMITS = ChildLimits(case_ms=2000, total_ms=4000, memory_mb=256, output_kb=16, reply_kb=64)
PROGRAM = """
import os
def look(path):
    import planted
    return [planted.VALUE, sorted(os.listdir(path)), os.access(path, os.W_OK), os.access(".", os.W_OK)]
"""


@pytest.fixture(scope="module")
def zygote():
    zygote = Zygote("test")
    yield zygote
    zygote.close()


@pytest.mark.parametrize("parent", ["/tmp", "/var/tmp", "/dev/shm", str(Path.home())])
def test_a_tree_is_seen_read_only_wherever_it_lies(zygote, parent):
    if not os.access(parent, os.W_OK):
        pytest.skip(f"{parent} is not writable here")
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        (tree / "planted.py").write_text("VALUE = 'planted'\n")
        (Path(folder) / "beside.txt").write_text("not to be seen")
        stage = zygote.stage(Scene(paths=(str(tree),)))
        child = stage.spawn(LIMITS)
        try:
            load = {
                "source": PROGRAM,
                "entry": "look",
                "arity": 1,
                "signature": "look(path)",
                "kind": "function",
                "target": None,
            }
            assert isinstance(child.exchange(frames.encode("load", load)), Reply)
            seen = []
            for path in (str(tree), folder):
                reply = child.exchange(frames.encode("case", {"inputs": {"path": path}}))
                assert isinstance(reply, Reply), reply
                seen.append(frames.decode(reply.data).body)
        finally:
            child.close()
            stage.close()
    assert seen[0] == ["planted", ["planted.py"], False, True]
    assert seen[1] == ["planted", ["tree"], False, True]
