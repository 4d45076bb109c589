"""How workers and the site log: one line an event on stderr, for people or as JSON (`COURSE_LOG_FORMAT`), tracebacks
without local variables. Locals would put seeds and learners' programs into the log."""

from __future__ import annotations

import sys

import structlog
from structlog.typing import Processor


def configure(form: str = "text") -> None:
    """Set up structlog for this process; `form`: "text" or "json"."""
    if form == "json":
        last: list[Processor] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        last = [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *last,
        ],
        # Whatever stderr is when a line is written: kept from here, it would outlive a redirection and then be closed.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
