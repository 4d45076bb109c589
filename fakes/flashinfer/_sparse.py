"""What attention under block masks has in common, equal blocks or variable ones."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from fake_kernels.findings import Finding
from fake_kernels.outcomes import Path

from flashinfer._options import only_default
from flashinfer._plan import Plan
from flashinfer._wrapper import AttentionWrapper


class SparseWrapper(AttentionWrapper):
    """Base of both; not part of the real package's interface."""

    _default_path = "fa2"
    _taken: Path = "fa2"

    def _path(self) -> Path:
        return self._taken

    def _row_findings(self, plan: Plan, q: torch.Tensor) -> Iterator[Finding]:
        yield from ()  # rows are compared with the plan before heads are brought to the front

    def _forward_options(
        self,
        pos_encoding_mode: str,
        use_fp16_qk_reduction: bool,
        logits_soft_cap: float | None,
        sm_scale: float | None,
        rope_scale: float | None,
        rope_theta: float | None,
    ) -> None:
        only_default(use_fp16_qk_reduction=(use_fp16_qk_reduction, False))
        scoring = (pos_encoding_mode, -1, logits_soft_cap, sm_scale, rope_scale, rope_theta)
        self._override(*scoring, causal=getattr(self, "_causal", False))
