"""What a scheduler is made from: an engine's configuration, and how requests are let in."""

from __future__ import annotations

from dataclasses import dataclass

from minisgl.engine.config import EngineConfig
from minisgl.env import env_flag


@dataclass(frozen=True)
class SchedulerConfig(EngineConfig):
    """max_extend_tokens: prompt tokens that one prefill batch computes at most; a longer prompt is computed in
    chunks, so that it holds up the requests that are decoding for one batch at a time.
    cache_type: the prefix cache, "radix" or "naive".
    overlap: launch the next batch before the current one's tokens are known; MINISGL_OVERLAP if None.
    check_pages: after each step, check that every page is in exactly one place; MINISGL_CHECK if None.
    """

    max_extend_tokens: int = 8192
    cache_type: str = "radix"
    overlap: bool | None = None
    check_pages: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_extend_tokens < 1:
            raise ValueError(f"SchedulerConfig.max_extend_tokens={self.max_extend_tokens}: give at least 1")

    @property
    def overlaps(self) -> bool:
        return self.overlap if self.overlap is not None else env_flag("MINISGL_OVERLAP", True)

    @property
    def checks_pages(self) -> bool:
        return self.check_pages if self.check_pages is not None else env_flag("MINISGL_CHECK", False)
