"""The memory that a wrapper is given: workspaces, buffers for CUDA graphs, tensors for its results."""

from __future__ import annotations

from typing import Any

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels.checks_values import check_buffers, check_tensors, check_written
from fake_kernels.findings import Finding, settle
from fake_kernels.mistakes_values import WORKSPACE_FORM
from fake_kernels.outcomes import Path

from flashinfer._options import refuse_option


class GivenMemory:
    """The part of a wrapper that looks at memory which the caller allocated."""

    _default_path: Path = "dec"
    """The kernel path named in errors of the constructor."""

    def _path(self) -> Path:
        raise NotImplementedError

    def _check_workspace(self, buffer: torch.Tensor, name: str) -> None:
        settle(check_tensors("data_ptr", **{name: buffer}), self._default_path, during="plan")
        if buffer.ndim != 1:
            found = Finding(WORKSPACE_FORM, name, {"shape": list(buffer.shape)})
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
            return  # of out alone, fa3 reads the strides (batch_prefill_sm90.cu)
        settle(check_written(name, tensor), self._path(), during="run")

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
        settle(check_buffers(given), self._default_path, during="plan")
