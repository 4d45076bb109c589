"""How workers and the site log: one line an event on stderr, tracebacks without local variables. Locals would put
seeds and learners' programs into the log."""

from __future__ import annotations

import sys

import structlog


def configure() -> None:
    """Set up structlog for this process."""
    renderer = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        # Whatever stderr is when a line is written: kept from here, it would outlive a redirection and then be closed.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
