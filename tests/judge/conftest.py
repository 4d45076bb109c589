"""One judge for all tests of this folder: starting one loads torch three times."""

import pytest

from judge.judge import Judge
from judge.packages import survey


@pytest.fixture(scope="session")
def judge():
    with Judge(children=2) as judge:
        yield judge


@pytest.fixture(scope="session")
def packages():
    return survey().packages
