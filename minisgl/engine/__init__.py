"""The engine: a model, its KV pool, its page table and a sampler, made from one configuration."""

from minisgl.engine.config import EngineConfig
from minisgl.engine.engine import Engine, ForwardOutput

__all__ = ["Engine", "EngineConfig", "ForwardOutput"]
