"""Attention backends, chosen by name."""

from __future__ import annotations

from minisgl.attention.base import BaseAttnBackend, BaseAttnMetadata, HybridBackend
from minisgl.kvcache.base import BaseKVCachePool
from minisgl.models.config import ModelConfig
from minisgl.utils.registry import Entry, Registry

ATTENTION_BACKENDS = Registry(
    "attention backend",
    {
        "torch": Entry("minisgl.attention.torch_backend:TorchBackend", 5),
        "fi": Entry("minisgl.attention.fi:FlashInferBackend", 17),
        "fa": Entry("minisgl.attention.fa:FlashAttentionBackend", 17),
    },
)


def resolve_backend(name: str, device_type: str) -> str:
    """What "auto" means on a device ("cuda" or "cpu"); any other name is itself."""
    if name != "auto":
        return name
    return "fa,fi" if device_type == "cuda" else "torch"


def create_attention_backend(name: str, config: ModelConfig, kvcache: BaseKVCachePool) -> BaseAttnBackend:
    """The backend called `name`; "a,b" is a for prefill and b for decode; "auto" follows the pool's device.

    ValueError for an unknown name, ImportError that says what to do if its kernels are not installed.
    """
    name = resolve_backend(name, kvcache.device.type)
    if "," not in name:
        backend: BaseAttnBackend = ATTENTION_BACKENDS.load(name)(config, kvcache)
        return backend
    parts = [part.strip() for part in name.split(",")]
    if len(parts) != 2:
        raise ValueError(f"attention backend {name!r}: give one name, or two as in 'fa,fi' (prefill, decode)")
    prefill, decode = (create_attention_backend(part, config, kvcache) for part in parts)
    return HybridBackend(prefill, decode)


__all__ = [
    "ATTENTION_BACKENDS",
    "BaseAttnBackend",
    "BaseAttnMetadata",
    "HybridBackend",
    "create_attention_backend",
    "resolve_backend",
]
