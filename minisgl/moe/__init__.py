"""Backends of mixture-of-experts layers, chosen by name."""

from __future__ import annotations

from minisgl.moe.base import BaseMoEBackend
from minisgl.utils.registry import Entry, Registry

MOE_BACKENDS = Registry(
    "MoE backend",
    {
        "torch": Entry("minisgl.moe.torch_backend:TorchMoE", 20),
        "fused": Entry("minisgl.moe.fused:FusedMoE", 20),
    },
)


def create_moe_backend(name: str) -> BaseMoEBackend:
    """The backend called `name`; "auto" is "fused". ValueError for an unknown name."""
    backend: BaseMoEBackend = MOE_BACKENDS.load("fused" if name == "auto" else name)()
    return backend


__all__ = ["MOE_BACKENDS", "BaseMoEBackend", "create_moe_backend"]
