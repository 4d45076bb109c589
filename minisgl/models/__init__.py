"""Models: their description, their layers put together, and their weights."""

from minisgl.models.config import ModelConfig, RotaryConfig

__all__ = ["ModelConfig", "RotaryConfig"]
