"""What can be wrong between the levels of a cascade, each of which is right by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import torch

from fake_kernels import mistakes_wrappers as m
from fake_kernels.findings import Finding

Level = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""qo_indptr, kv_indptr and indices of one level."""


def check_levels(levels: Sequence[Level], causal: bool) -> Iterator[Finding]:
    """Whether no row sees a page at two levels, and whether the last level, where causal holds, is the finest.

    Nothing is said of levels that are wrong by themselves: their own plan does.
    """
    if not all(_is_sound(*level) for level in levels):
        return
    rows = [qo_indptr.tolist() for qo_indptr, _, _ in levels]
    for level, starts in enumerate(rows[:-1]):
        between = sorted(set(starts) - set(rows[-1])) if causal else []
        if between:
            params = {"level": level, "row": between[0], "last": len(rows) - 1}
            yield Finding(m.LEVELS_ORDER, "qo_indptr_arr", params)
    segments = [
        [
            (span, set(pages[a:b].tolist()))
            for span, (a, b) in zip(pairwise(of), pairwise(sums.tolist()), strict=True)
        ]
        for of, (_, sums, pages) in zip(rows, levels, strict=True)
    ]
    for (level, upper), (other, lower) in combinations(enumerate(segments), 2):
        for (first, end), pages in upper:
            for (start, stop), more in lower:
                both = pages & more
                if both and max(first, start) < min(end, stop):
                    params = {"value": min(both), "level": level, "other": other, "row": max(first, start)}
                    yield Finding(m.LEVEL_PAGE_TWICE, f"paged_kv_indices_arr[{other}]", params)
                    return


def _is_sound(*level: torch.Tensor) -> bool:
    """Whether these are running sums of as many segments, and enough pages."""
    if not all(isinstance(given, torch.Tensor) and given.ndim == 1 for given in level):
        return False
    rows, sums, pages = level
    rising = all(len(s) > 1 and int(s[0]) == 0 and bool((s[1:] >= s[:-1]).all()) for s in (rows, sums))
    return rising and len(rows) == len(sums) and len(pages) >= int(sums[-1])
