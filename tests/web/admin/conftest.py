"""An administrator's browser, and verdicts as a worker leaves them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.web.accounts.conftest import Visitor, app, person, settings, signed_in, store, visitor  # noqa: F401
from tests.web.classes.conftest import judged  # noqa: F401
from web.accounts.tables import Role


@pytest.fixture
def root(signed_in: Callable[..., Visitor]) -> Visitor:  # noqa: F811
    return signed_in("root", Role.ADMIN)
