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
    socket_folder: where the sockets of the processes around a scheduler that serves are; None for a scheduler
    that is driven from its own process.
    num_tokenizer: processes that tokenize and detokenize, each for its share of the requests; 0 means 1.
    check_pages: after each step, check that every page is in exactly one place; MINISGL_CHECK if None.
    """

    max_extend_tokens: int = 8192
    cache_type: str = "radix"
    overlap: bool | None = None
    check_pages: bool | None = None
    socket_folder: str | None = None
    num_tokenizer: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_extend_tokens < 1:
            raise ValueError(f"SchedulerConfig.max_extend_tokens={self.max_extend_tokens}: give at least 1")
        if self.num_tokenizer < 0:
            raise ValueError(f"SchedulerConfig.num_tokenizer={self.num_tokenizer}: give 0 or more")

    def address(self, name: str) -> str:
        """Where a queue of this server is: "backend" (to the scheduler's first rank), "broadcast" (from it to
        the other ranks), "frontend", "control" (to whoever started the processes)."""
        if self.socket_folder is None:
            raise RuntimeError(f"there is no {name} queue: this scheduler has no socket_folder")
        return f"ipc://{self.socket_folder}/{name}"

    @property
    def tokenizer_addresses(self) -> tuple[str, ...]:
        """A queue for each tokenizer process. Request uid is the business of number uid % len, so that all
        messages about it take one way and keep their order."""
        return tuple(self.address(f"tokenizer{index}") for index in range(max(1, self.num_tokenizer)))

    @property
    def overlaps(self) -> bool:
        return self.overlap if self.overlap is not None else env_flag("MINISGL_OVERLAP", True)

    @property
    def checks_pages(self) -> bool:
        return self.check_pages if self.check_pages is not None else env_flag("MINISGL_CHECK", False)
