"""What can be wrong with block sparse masks, of equal blocks (BSR) and of variable ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch

from fake_kernels import mistakes_blocks as m
from fake_kernels import mistakes_indptr as mi
from fake_kernels.checks_ragged import check_tensors
from fake_kernels.checks_values import check_tensors as check_given
from fake_kernels.findings import Finding
from fake_kernels.outcomes import GARBAGE, HARMLESS, UNMEASURED, raises


@dataclass(frozen=True)
class Blocks:
    """A mask of M x N in blocks of R x C: indptr int32 [block rows + 1], indices int32 [blocks], as in BSR.

    mask: bool [blocks, R, C] or None. The last block row may be short, block columns may not. kv: heads and head_dim of
    K and V.
    """

    indptr: torch.Tensor
    indices: torch.Tensor
    M: int
    N: int
    R: int
    C: int
    mask: torch.Tensor | None = None
    kv: tuple[int, int] = (1, 1)

    def findings(self, group: int, uses_mask: bool) -> Iterator[Finding]:
        """Everything wrong with it. group: query heads a KV head."""
        for name, tensor in (("indptr", self.indptr), ("indices", self.indices)):
            if not isinstance(tensor, torch.Tensor) or tensor.ndim != 1:
                shape = list(tensor.shape) if isinstance(tensor, torch.Tensor) else type(tensor).__name__
                yield Finding(mi.NOT_A_VECTOR, name, {"shape": shape})
                return
            if tensor.dtype != torch.int32:
                dtype = str(tensor.dtype).removeprefix("torch.")
                yield Finding(mi.KV_INDPTR_NOT_INT32, name, {"dtype": dtype})
        sizes = {"M": self.M, "N": self.N, "R": self.R, "C": self.C}
        if self.C < 1 or self.N % max(1, self.C):
            heads, dim = self.kv
            told = sizes | {"heads": heads, "dim": dim, "size": self.N * heads * dim}
            yield Finding(m.BLOCK_COLUMNS, "C", told, UNMEASURED if self.C < 1 else None)
            return
        rows = -(-self.M // max(1, self.R))
        if len(self.indptr) != rows + 1:
            params = {"got": len(self.indptr), "blocks": rows, "expected": rows + 1}
            outcome = HARMLESS if len(self.indptr) > rows + 1 and not uses_mask else UNMEASURED
            yield Finding(m.BLOCK_ROWS, "indptr", sizes | params, outcome)
        yield from self._content_findings(sizes)
        if self.R > 1 and self.R * group < 4 and not uses_mask:
            yield Finding(m.BLOCK_SMALL, "R", sizes | {"group": group})
        if self.mask is not None:
            yield from check_tensors(mask=self.mask)
        if self.mask is not None and list(self.mask.shape) != [len(self.indices), self.R, self.C]:
            expected = str([len(self.indices), self.R, self.C])
            params = {"shape": list(self.mask.shape), "expected": expected}
            narrow = self.mask.shape[:-1] == (len(self.indices), self.R) and self.mask.shape[-1] < self.C
            yield Finding(m.BLOCK_MASK_SHAPE, "mask", params, GARBAGE if narrow else UNMEASURED)

    def _content_findings(self, sizes: dict[str, int]) -> Iterator[Finding]:
        entries = self.indptr.tolist()
        for problem, problem_zh, wrong in (
            ("it must start at 0", "必须从 0 开始", entries[0] != 0),
            ("it must not decrease", "不能变小", any(b < a for a, b in pairwise(entries))),
            (
                f"it must end at the {len(self.indices)} blocks of indices",
                f"最后一项必须是 indices 的块数 {len(self.indices)}",
                entries[-1] != len(self.indices),
            ),
        ):
            if wrong:
                params = {"entries": str(entries[:9]), "problem": problem, "problem_zh": problem_zh}
                yield Finding(m.BLOCK_INDPTR, "indptr", params)
                return
        columns = self.N // self.C
        outside = ((self.indices < 0) | (self.indices >= columns)).nonzero()
        if outside.numel():
            position = int(outside[0])
            value = int(self.indices[position])
            noticed = int(self.indices.max()) * self.C > self.N
            yield Finding(
                m.BLOCK_OUT_OF_RANGE,
                "indices",
                sizes | {"position": position, "value": value, "blocks": columns, "last": columns - 1},
                raises(ValueError, "indices out of bound") if noticed else None,
            )
        for row, (first, last) in enumerate(pairwise(entries)):
            mine = self.indices[first:last].tolist()
            twice = next((at for at, value in enumerate(mine) if value in mine[:at]), None)
            if twice is not None:
                params = {"position": first + twice, "value": mine[twice], "row": row}
                yield Finding(m.BLOCK_TWICE, "indices", params)
                return

    def flat_mask(self) -> torch.Tensor | None:
        """The mask as a kernel reads it: block row after block row, in it row after row over all its blocks
        (sparse.py, convert_bsr_mask_layout); bool [rows * columns of all block rows]."""
        if self.mask is None:
            return None
        parts = []
        for i, (first, last) in enumerate(pairwise(self.indptr.tolist())):
            rows = min(self.R, self.M - i * self.R)
            parts.append(self.mask[first:last].transpose(0, 1)[:rows].reshape(-1))
        return torch.cat(parts)


@dataclass(frozen=True)
class VariableBlocks:
    """A mask for each KV head: map bool [heads, rows, columns] over blocks of row_sz [heads, rows] by
    col_sz [heads, columns] tokens."""

    map: torch.Tensor
    row_sz: torch.Tensor
    col_sz: torch.Tensor
    heads: int

    def findings(self) -> Iterator[Finding]:
        """Everything wrong with it."""
        sizes = {"block_row_sz": self.row_sz, "block_col_sz": self.col_sz}
        yield from check_tensors(block_mask_map=self.map, **sizes)
        for name, tensor in sizes.items():
            if tensor.ndim != 2 or tensor.dtype not in (torch.int32, torch.int64):
                shape = f"{list(tensor.shape)} {tensor.dtype}"
                yield Finding(m.VARIABLE_SHAPE, name, {"shape": shape, "expected": "2-D int32"})
                return
        rows, columns = self.row_sz.shape[1], self.col_sz.shape[1]
        for name, tensor, expected in (
            ("block_mask_map", self.map, [self.heads, rows, columns]),
            ("block_row_sz", self.row_sz, [self.heads, rows]),
            ("block_col_sz", self.col_sz, [self.heads, columns]),
        ):
            if list(tensor.shape) != expected:
                params = {"shape": list(tensor.shape), "expected": str(expected)}
                yield Finding(m.VARIABLE_SHAPE, name, params)
                return
        for name, tensor in sizes.items():
            sums = tensor.sum(dim=1).tolist()
            for head, value in enumerate(sums):
                if int(tensor[head].min()) < 0:
                    params = {"expected": "one of them is negative", "expected_zh": "其中有负数"}
                    yield Finding(m.VARIABLE_SIZES, name, {"head": head, "value": value, **params})
                    return
                if value != sums[0]:
                    params = {"expected": f"on head 0 to {sums[0]}", "expected_zh": f"头 0 上是 {sums[0]}"}
                    yield Finding(m.VARIABLE_SIZES, name, {"head": head, "value": value, **params})
                    return

    def columns(self) -> tuple[torch.Tensor, torch.Tensor]:
        """KV of every (head, block row), heads one behind the other: running sum int32
        [heads * rows + 1] and token numbers int32 [sum]."""
        per_head = int(self.col_sz[0].sum())
        found: list[torch.Tensor] = []
        for head in range(self.heads):
            sizes = self.col_sz[head].to(torch.int64)
            tokens = self.map[head].bool().repeat_interleave(sizes, dim=1)
            found += [row.nonzero().flatten() + head * per_head for row in tokens]
        lengths = torch.tensor([0, *(len(f) for f in found)], dtype=torch.int32)
        return lengths.cumsum(0, dtype=torch.int32), torch.cat(found).to(torch.int32)


def check_planned_shapes(**given: tuple[torch.Tensor, list[int]]) -> Iterator[Finding]:
    """Whether q, k and v of a run have the planned shapes; each is `name=(tensor, shape)`."""
    yield from check_given("dtype", **{name: tensor for name, (tensor, _) in given.items()})
    for name, (tensor, expected) in given.items():
        if list(tensor.shape) != expected:
            yield Finding(m.Q_SHAPE, name, {"shape": list(tensor.shape), "expected": str(expected)})
