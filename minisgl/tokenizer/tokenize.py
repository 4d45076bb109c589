"""From a prompt to token ids.

A chat is laid out by the model's own template first, which writes the special tokens itself; a plain text gets
those that the tokenizer adds to every text, such as a beginning-of-text token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from minisgl.message.tokenizer import TokenizeMsg

# Names that the layout of a chat itself is decided by; a request may set any other.
RESERVED_ARGS = ("conversation", "tokenize", "return_dict", "return_tensors", "chat_template", "padding")


class PromptError(ValueError):
    """A prompt cannot become tokens; the text says why, to whoever sent it."""


class Tokenizer:
    """tokenizer: the model's, as transformers reads it."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, message: TokenizeMsg) -> torch.Tensor:
        """int32 [prompt tokens]; PromptError."""
        prompt = message.prompt
        if isinstance(prompt, str):
            ids = self._tokenizer.encode(prompt)
        elif isinstance(prompt, list):
            text = self.lay_out(prompt, message.template_args)
            ids = self._tokenizer.encode(text, add_special_tokens=False)
        else:
            ids = list(prompt)
        try:
            return torch.tensor(ids, dtype=torch.int32)
        except (RuntimeError, ValueError, TypeError) as error:
            raise PromptError(f"the prompt has something that is no token id: {error}") from error

    def lay_out(self, chat: Sequence[Mapping[str, Any]], template_args: Mapping[str, Any]) -> str:
        """The text that the model's chat template makes of a chat; PromptError, among others if it refuses.

        template_args: passed to the template. `add_generation_prompt` is true unless they say otherwise.
        """
        import jinja2

        if self._tokenizer.chat_template is None:
            raise PromptError("this model has no chat template: send a prompt instead of messages")
        if reserved := sorted(set(template_args) & set(RESERVED_ARGS)):
            raise PromptError(f"chat_template_kwargs cannot set {', '.join(reserved)}")
        arguments = {"add_generation_prompt": True, **template_args}
        try:
            text: str = self._tokenizer.apply_chat_template(list(chat), tokenize=False, **arguments)
        except (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            # A template is a program that came with the model; what it raises is about the messages.
            raise PromptError(f"the model's chat template refuses these messages: {error}") from error
        return text
