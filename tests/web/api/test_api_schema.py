"""Requests drawn from the OpenAPI document, good and bad ones: no answer is a fault of ours, each is as the document says."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import negative_data_rejection

from web.limits import limiter

pytestmark = pytest.mark.slow
EXAMPLES = int(os.environ.get("COURSE_SCHEMA_EXAMPLES", "20"))  # of each operation; more for a long look

# A request that is bad by lacking its token gets one here, and an empty list in a query is sent as nothing at all: such a
# request is good by the time it arrives. `test_api_submissions` has the bad bodies one by one.
NOT_FOR_US = [negative_data_rejection]


@pytest.fixture
def without_limits(app) -> Iterator[None]:
    """It asks more often than anybody may."""
    limiter.enabled = False
    yield
    limiter.enabled = True


@pytest.fixture
def schema(app):
    return schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app, config=SchemathesisConfig())


def look(schema, headers, mode, **fixed) -> dict[str, set[int]]:
    """Ask each operation; the statuses that came. `fixed`: parts of the path that are not drawn; then only those operations
    that have them."""
    seen: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        names = {name: value for name, value in fixed.items() if f"{{{name}}}" in operation.path}
        if fixed and not names:
            continue

        @given(case=operation.as_strategy(generation_mode=mode, path_parameters=names or None))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        def ask(case):
            answer = case.call_and_validate(headers=headers, excluded_checks=NOT_FOR_US)
            assert answer.status_code < 500
            seen.setdefault(case.operation.label, set()).add(answer.status_code)

        ask()
    return seen


@pytest.fixture
def headers(program, judge_all):
    """Those of somebody with a verdict, number 1, and a submission that waits, number 2."""
    anna = program("anna")
    anna.submit("x = 1")
    judge_all()
    anna.submit("x = 1")
    return {"Authorization": f"Bearer {anna.token}", "Accept-Language": "en"}


def test_good_requests(schema, headers, without_limits):
    seen = look(schema, headers, GenerationMode.POSITIVE)
    assert len(seen) == 7
    assert all(seen[f"GET /api/v1/{path}"] >= {200} for path in ("me", "problems", "submissions"))


def test_good_requests_for_what_is_there(schema, headers, without_limits):
    seen = look(schema, headers, GenerationMode.POSITIVE, problem=200, submission=1)
    assert seen["GET /api/v1/problems/{problem}"] == {200}
    assert seen["GET /api/v1/submissions/{submission}"] == {200}
    assert seen["POST /api/v1/submissions/{submission}/cancel"] == {409}
    seen = look(schema, headers, GenerationMode.POSITIVE, submission=2)
    assert seen["POST /api/v1/submissions/{submission}/cancel"] == {200, 409}


def test_bad_requests(schema, headers, without_limits):
    seen = look(schema, headers, GenerationMode.NEGATIVE)
    assert 422 in seen["POST /api/v1/submissions"]
    assert 422 in seen["GET /api/v1/submissions"]
