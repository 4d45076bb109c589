"""What decode and prefill over a paged KV cache have in common: the checks of the page lists in plan."""

from __future__ import annotations

from typing import Any

import torch
from fake_kernels.checks_masks import MaskOf
from fake_kernels.checks_paged import PagedMetadata, check_metadata, check_vectors
from fake_kernels.errors import not_modelled
from fake_kernels.findings import require_context, settle
from fake_kernels.outcomes import Path

from flashinfer._cache import unpack_cache
from flashinfer._plan import Plan
from flashinfer._wrapper import AttentionWrapper


class PagedWrapper(AttentionWrapper):
    """Base of the paged wrappers. Not part of the real package's interface."""

    def _check_vectors(self, meta: PagedMetadata, path: Path) -> None:
        settle(check_vectors(meta, path), path, during="plan")

    def _plan_pages(self, meta: PagedMetadata, path: Path, mask: MaskOf | None = None, **sizes: Any) -> Plan:
        """A plan of the batch that `meta` describes; `sizes` as `_make_plan` takes them."""
        given = {
            "indptr": (meta.indptr_name, meta.kv_indptr),
            "indices": (meta.indices_name, meta.indices),
            "last": (meta.last_name, meta.last_page_len),
        }
        if meta.qo_indptr is not None:
            given["qo"] = (meta.qo_name, meta.qo_indptr)
        plan = self._make_plan(
            given,
            check_metadata(meta, path),
            path,
            batch=meta.batch,
            page_size=meta.page_size,
            seq_lens=meta.seq_lens,
            mask=mask,
            **sizes,
        )
        if plan.fault is not None and plan.fault.raised is ValueError:
            # A qo_indptr without the last requests (faithful mode): run compares the rows of q itself, and computes the rest.
            plan.fault = None
        return plan

    def _launch_pages(
        self, q: torch.Tensor, paged_kv_cache: object, **how: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """One run over a cache in any of the forms of `unpack_cache`; `how` as `_launch` takes it."""
        require_context()
        k_cache, v_cache = unpack_cache(paged_kv_cache, self._kv_layout, self._path())
        return self._launch(q, k_cache, v_cache, **how)


def require_window(window_left: int) -> None:
    """Refuse windows that mean nothing: the real kernels take any negative number for no window."""
    if window_left < -1:
        raise not_modelled("window_left", window_left)
