"""What monitoring reads: `/healthz` (is the site able to serve?) and `/metrics` (Prometheus's text format)."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable
from http import HTTPMethod

import structlog
from flask import Blueprint, Flask, Response, abort, current_app, g, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from judge.store import now
from web.accounts.identity import identity
from web.admin.health import look
from web.services import Services, services

log = structlog.get_logger("web.requests")
blueprint = Blueprint("ops", __name__)
METHODS = frozenset(str(m) for m in HTTPMethod)
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0)


class State(Collector):
    """The queue, the workers and the disk, looked at when they are asked for."""

    def __init__(self, found: Services) -> None:
        self._services = found

    def collect(self) -> Iterable[Metric]:
        health = look(self._services)
        yield _gauge("course_submissions_queued", "Submissions that wait", health.queued)
        yield _gauge("course_submissions_running", "Submissions that are being judged", health.running)
        yield _gauge("course_queue_oldest_seconds", "How long the first in line has waited", health.oldest_s)
        yield _gauge("course_workers", "Workers that are there", sum(w.is_there for w in health.workers))
        yield _gauge("course_disk_free_bytes", "Room in the data folder", health.disk_free_mb * 2**20)
        verdicts = GaugeMetricFamily(
            "course_verdicts_last_hour", "Verdicts of the last hour", labels=["status"]
        )
        for status, count in sorted(health.verdicts.items()):
            verdicts.add_metric([status], count)
        yield verdicts


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def init_app(app: Flask) -> None:
    registry = CollectorRegistry()
    registry.register(State(app.extensions["course"]))
    app.extensions["metrics"] = registry
    app.extensions["request_seconds"] = Histogram(
        "course_request_seconds",
        "Time to answer, by endpoint and status",
        ["endpoint", "method", "status"],
        buckets=BUCKETS,
        registry=registry,
    )
    # First of all: what the guard turns away has taken its time too.
    app.before_request_funcs.setdefault(None, []).insert(0, _begin)
    app.after_request(_end)
    app.register_blueprint(blueprint)


def _begin() -> None:
    g.began = time.perf_counter()


def _end(response: Response) -> Response:
    if "began" in g and response.mimetype != "text/event-stream":
        # The endpoint, not the address, and no method that HTTP has not: what strangers make up must not become a series
        # each.
        method = request.method if request.method in METHODS else "other"
        labels = (request.endpoint or "none", method, str(response.status_code))
        seconds = time.perf_counter() - g.began
        current_app.extensions["request_seconds"].labels(*labels).observe(seconds)
        if services().settings.log_format == "json":
            who = identity()
            log.info(
                "request",
                method=method,
                endpoint=labels[0],
                status=response.status_code,
                ms=round(seconds * 1000, 1),
                user=who.key if who is not None else "",
            )
    return response


@blueprint.get("/healthz")
def healthz() -> tuple[str, int]:
    """200 if pages can be made and the database answers, else 503."""
    try:
        with services().store.read() as session:
            session.scalars(select(now())).one()
    except SQLAlchemyError:
        return "the database does not answer\n", 503
    return "ok\n", 200


@blueprint.get("/metrics")
def metrics() -> Response:
    """For whoever sends `Authorization: Bearer` with COURSE_METRICS_TOKEN; without that setting there are none."""
    token = services().settings.metrics_token.get_secret_value()
    given = request.headers.get("Authorization", "")
    if not token:
        abort(404)
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        abort(401)
    registry: CollectorRegistry = current_app.extensions["metrics"]
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
