"""The engine in one's own process: prompts in, answers out, no server."""

from minisgl.llm.llm import LLM, Completion

__all__ = ["LLM", "Completion"]
