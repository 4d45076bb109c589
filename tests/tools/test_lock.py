"""The pins fit what is asked for, and a lock that does not fit is noticed."""

from __future__ import annotations

import json

import pytest
from packaging.requirements import Requirement

from tools import lock
from tools.frontend import FRONTEND


def test_the_lock_fits_the_project():
    assert lock.misfits(list(lock.direct()), lock.LOCK.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("b==1\n", "a is not in"),
        ("a==2\n", "pyproject.toml asks for a==1"),
        ("a>=1\n", "pyproject.toml asks for a==1"),
    ],
)
def test_a_lock_that_does_not_fit_is_noticed(text, fault):
    [said] = lock.misfits([Requirement("a==1")], text)
    assert fault in said


def test_locking_what_is_not_installed_is_refused():
    with pytest.raises(lock.LockError, match="not installed"):
        lock.locked([Requirement("no-such-package-anywhere==1")])
    with pytest.raises(lock.LockError, match="is installed"):
        lock.locked([Requirement("click==0.1")])


def test_locks_hold_exact_versions_and_no_addresses():
    for line in lock.LOCK.read_text("utf-8").splitlines():
        [specifier] = Requirement(line).specifier
        assert specifier.operator == "=="
        assert "+" not in specifier.version
        assert Requirement(line).url is None
    text = (FRONTEND / "package-lock.json").read_text("utf-8")
    assert '"resolved"' not in text
    asked = json.loads((FRONTEND / "package.json").read_text("utf-8"))
    held = json.loads(text)["packages"]
    for name, version in {**asked["dependencies"], **asked["devDependencies"]}.items():
        assert held[f"node_modules/{name}"]["version"] == version
        assert held[f"node_modules/{name}"]["integrity"].startswith("sha512-")
