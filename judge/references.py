"""References and known mistakes on the judge's side: trusted programs, run in children of their own zygote.

Every verdict asks the reference for the answers of its random cases. A child that has it loaded therefore stays for the
next verdict, which saves forking, confining, loading and ending one each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from judge.packages import Package
from judge.sandbox.client import Stage
from judge.sandbox.local import LocalChild, LocalStage
from judge.sandbox.process import Child, Ending, Reply
from judge.staging import LOAD_MS, child_limits, load_frame

AnyChild = Child | LocalChild
Ask = Callable[[AnyChild, bytes], Reply | Ending]


class References:
    """The stage of one problem version's reference and known mistakes.

    Invariants: a kept child has run the reference and nothing else, so that no mistake can colour an answer; it has its
    limits for itself at each round of cases; at most `most` are kept.
    """

    def __init__(
        self,
        package: Package,
        stage: Stage | LocalStage,
        ask: Ask,
        retire: Callable[[AnyChild], None],
        most: int,
    ) -> None:
        """`ask` runs one case in a child; `retire` ends a child while nobody waits; `most` children are kept."""
        self._package = package
        self._stage = stage
        self._ask = ask
        self._retire = retire
        self._most = most
        self._lock = threading.Lock()
        self._kept: list[AnyChild] = []
        self._closed = False

    def answer(self, case_frames: list[bytes]) -> list[bytes]:
        """What the reference replies to each case; empty from where it was ended on."""
        kept = self._take()
        if kept is not None:
            replies = self._round(kept, case_frames)
            if kept.ended is None:
                return replies
            # It was ended from outside, or by what earlier rounds left behind: a new one has no past.
        return self._round(self._load(self._package.solution), case_frames)

    def mistake(self, source: str, case_frames: list[bytes]) -> list[bytes]:
        """What a known mistake replies to each case; empty from where it was ended on."""
        child = self._load(source)
        try:
            return self._cases(child, case_frames)
        finally:
            self._retire(child)

    def _round(self, child: AnyChild, case_frames: list[bytes]) -> list[bytes]:
        try:
            replies = self._cases(child, case_frames)
        except BaseException:
            self._retire(child)
            raise
        self._keep(child)
        return replies

    def _load(self, source: str) -> AnyChild:
        child = self._stage.spawn(child_limits(self._package))
        try:
            child.exchange(load_frame(self._package, source), LOAD_MS)
        except BaseException:
            self._retire(child)
            raise
        return child

    def _cases(self, child: AnyChild, case_frames: list[bytes]) -> list[bytes]:
        replies = [b""] * len(case_frames)
        for i, frame in enumerate(case_frames):
            if child.ended is not None:
                break
            answer = self._ask(child, frame)
            if isinstance(answer, Reply):
                replies[i] = answer.data
        return replies

    def _take(self) -> AnyChild | None:
        with self._lock:
            return self._kept.pop() if self._kept else None

    def _keep(self, child: AnyChild) -> None:
        """Keep a child for the next round, or retire it if it cannot have all its limits once more."""
        if child.ended is None and child.renew():
            with self._lock:
                if not self._closed and len(self._kept) < self._most:
                    self._kept.append(child)
                    return
        self._retire(child)

    def close(self) -> None:
        """End the stage and all that is kept."""
        with self._lock:
            self._closed = True
            kept, self._kept = self._kept, []
        for child in kept:
            child.close()
        self._stage.close()
