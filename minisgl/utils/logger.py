"""One logger for the engine; lines say which rank they come from when there are several."""

from __future__ import annotations

import logging

from minisgl.distributed.info import try_get_tp_info


class _RankFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        info = try_get_tp_info()
        record.rank = f" rank {info.rank}" if info is not None and info.size > 1 else ""
        return True


def init_logger(name: str) -> logging.Logger:
    """The logger of a module (`init_logger(__name__)`).

    It writes through the root logger's handlers if the program has set any up; otherwise warnings go to
    stderr.
    """
    logger = logging.getLogger(name)
    if not any(isinstance(known, _RankFilter) for known in logger.filters):
        logger.addFilter(_RankFilter())
    return logger


def setup_logging(level: int = logging.INFO) -> None:
    """Log to stderr, one line a record. For programs; a library's user configures logging for themselves."""
    logging.basicConfig(level=level, format="%(asctime)s %(levelname).1s %(name)s%(rank)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(_RankFilter())
