"""The memory that a wrapper is given: workspaces, buffers for CUDA graphs, tensors for its results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels.checks_values import check_buffers, check_room, check_tensors, check_written
from fake_kernels.findings import Finding, settle
from fake_kernels.memory import memory
from fake_kernels.mistakes_values import WORKSPACE_FORM
from fake_kernels.outcomes import GARBAGE, UNMEASURED, Outcome, Path, raises

from flashinfer._options import refuse_option


class GivenMemory:
    """The part of a wrapper that looks at memory which the caller allocated."""

    _default_path: Path = "dec"
    """The kernel path named in errors of the constructor."""

    _buffer_fault: Outcome | None = None
    """What buffers for CUDA graphs that kernels can't use lead to (faithful mode)."""

    def _path(self) -> Path:
        raise NotImplementedError

    def _check_workspace(self, buffer: torch.Tensor, name: str) -> None:
        settle(check_tensors("data_ptr", **{name: buffer}), self._default_path, during="plan")
        if buffer.ndim != 1:
            outcome = None if buffer.ndim > 1 and name == "float_workspace_buffer" else UNMEASURED
            found = Finding(WORKSPACE_FORM, name, {"shape": list(buffer.shape)}, outcome)
            settle([found], self._default_path, during="plan")
        if buffer.numel() and buffer.data_ptr() % 16:
            rest = buffer.data_ptr() % 16
            message = f"{name} must be 16-byte aligned, got data_ptr % 16 = {rest}"
            allowed = {
                "en": "memory at an address that 16 divides",
                "zh": "地址是 16 的倍数的内存",
            }
            refuse_option(name, f"0x{buffer.data_ptr():x}", allowed, ValueError, message, self._default_path)

    def _check_out(self, tensor: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype, name: str) -> None:
        settle(check_tensors("shape", **{name: tensor}), self._path(), during="run")
        for aspect, got, expected in (
            ("shape", str(tensor.shape), str(torch.Size(shape))),
            ("dtype", str(tensor.dtype), str(dtype)),
        ):
            if got != expected:
                message = f"Invalid {aspect} of {name}: expected {expected}, got {got}"
                params = {"got": got, "expected": expected, "message": message}
                settle([Finding(m.OUT_MISMATCH, name, params)], self._path(), during="run")
        if self._path() == "fa3" and name == "out" and tensor.stride(-1) == 1:
            settle(check_room(out=tensor), self._path(), during="run")
            return  # of out alone, fa3 reads the strides (batch_prefill_sm90.cu)
        outcome = _of_strides(self._path(), name, self._reads_pages())
        told = [replace(found, outcome=outcome) for found in check_written(name, tensor)]
        settle(told, self._path(), during="run")

    def _written(self, into: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """The caller's tensor with the result in it. Faithful mode: strides are not looked at but on fa3, and rows that the
        plan doesn't have are not written."""
        rows = self._rows_written(len(out))
        if self._path() == "fa3" or into.is_contiguous():
            into[:rows].copy_(out[:rows])
            return into
        dense = memory(into, out[:rows].numel())
        dense.copy_(out[:rows].flatten()[: len(dense)])
        return into

    def _reads_pages(self) -> bool:
        """Whether the last plan was one over pages."""
        return False

    def _rows_written(self, rows: int) -> int:
        """How many of these rows of a result the kernel writes."""
        return rows

    def _fill_unasked_lse(self, lse: torch.Tensor, told: torch.Tensor) -> None:
        """Write an LSE into a tensor that was given without return_lse: only the kernel's binding looks at its form."""
        path = self._path()
        settle(check_tensors("shape", lse=lse), path, during="run")
        settle(_unasked_form(lse, told, path), path, during="run")
        if lse.dtype == torch.float32:
            settle(check_written("lse", lse), path, during="run")
            lse.copy_(told)
            return
        # Its bytes are float32 values, of which these are as many as fit; the kernel wrote the others behind it.
        values = told.contiguous().view(-1).view(lse.dtype)
        lse.view(-1).copy_(values[: lse.numel()])

    def _graph_error(self, argument: str, message: str) -> None:
        finding = Finding(m.GRAPH_BUFFERS, argument, {"message": message})
        settle([finding], self._default_path, during="plan")

    def _graph_buffers_of(self, message: str, **named: tuple[str, Any]) -> dict[str, torch.Tensor]:
        """The caller's buffers for CUDA graphs by key; each is given as `key=(argument, buffer)`."""
        for argument, buffer in named.values():
            if not isinstance(buffer, torch.Tensor):
                self._graph_error(argument, message.format(argument))
        self._check_graph_buffers({argument: (buffer, torch.int32) for argument, buffer in named.values()})
        return {key: buffer for key, (_, buffer) in named.items()}

    def _check_graph_buffers(self, given: dict[str, tuple[torch.Tensor, torch.dtype]]) -> None:
        found = settle(check_buffers(given), self._path(), during="plan")
        self._buffer_fault = self._buffer_fault or found


def _of_strides(path: Path, name: str, paged: bool) -> Outcome:
    """What a result that is not contiguous leads to; of out over pages it was measured."""
    return GARBAGE if name == "out" and path != "fa3" and paged else UNMEASURED


def _unasked_form(lse: torch.Tensor, told: torch.Tensor, path: Path) -> Iterator[Finding]:
    """Whether `lse` has the shape and type of `told`: the kernel's own check of the shape, and none of the type."""
    if lse.shape != told.shape:
        outcome = UNMEASURED
        for dim in range(min(2, lse.ndim)):
            if lse.shape[dim] != told.shape[dim]:
                of = {"dec": ("batch_size", "num_qo_heads")}.get(path, ("q.size(0)", "q.size(1)"))[dim]
                sizes = f"({lse.shape[dim]} vs. {told.shape[dim]})"
                outcome = raises(RuntimeError, f"Check failed: lse.size({dim}) == {of} {sizes}", "run")
                break
        params = {"got": str(list(lse.shape)), "expected": str(list(told.shape)), "message": ""}
        yield Finding(m.OUT_MISMATCH, "lse", params, outcome)
    if lse.dtype != torch.float32:
        outcome = (
            GARBAGE if lse.is_floating_point() and lse.itemsize == 2 and lse.is_contiguous() else UNMEASURED
        )
        params = {"got": str(lse.dtype), "expected": "torch.float32", "message": ""}
        yield Finding(m.OUT_MISMATCH, "lse", params, outcome)
