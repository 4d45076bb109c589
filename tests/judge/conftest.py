"""The problems of the course, for those that are judged."""

import pytest

from judge.packages import survey


@pytest.fixture(scope="session")
def packages():
    return survey().packages
