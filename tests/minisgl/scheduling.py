"""Driving a real scheduler by hand, step by step, on a model small enough to run thousands of steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from minisgl.core import SamplingParams
from minisgl.distributed import DistributedInfo
from minisgl.message.backend import AbortBackendMsg, BaseBackendMsg, UserMsg
from minisgl.message.tokenizer import DetokenizeMsg
from minisgl.scheduler.config import SchedulerConfig
from minisgl.scheduler.scheduler import Scheduler

VOCAB = 40
EOS = 3


class Driven(Scheduler):
    """Reads from `inbox`, appends to `outbox`; after each step every page is checked to be in one place.

    `told` holds each request's tokens, `ended` how it ended; a second end, or anything after it, fails.
    """

    def __init__(self, folder: Path, **settings: Any) -> None:
        config = {
            "model_path": str(folder),
            "tp_info": DistributedInfo(0, 1),
            "dtype": torch.float32,
            "device": torch.device("cpu"),
            "max_running_req": 8,
            "num_page_override": 256,
            "max_seq_len_override": 128,
            "check_pages": True,
            **settings,
        }
        super().__init__(SchedulerConfig(**config))
        self.inbox: list[BaseBackendMsg] = []
        self.outbox: list[DetokenizeMsg] = []
        self.told: dict[int, list[int]] = {}
        self.ended: dict[int, DetokenizeMsg] = {}

    def receive_msg(self, blocking: bool) -> list[BaseBackendMsg]:
        messages, self.inbox = self.inbox, []
        return messages

    def send_result(self, reply: Sequence[Any]) -> None:
        for message in reply:
            assert message.uid not in self.ended, f"request {message.uid} was told something after its end"
            self.outbox.append(message)
            tokens = self.told.setdefault(message.uid, [])
            if message.next_token is not None:
                tokens.append(message.next_token)
            if message.finished:
                self.ended[message.uid] = message

    def ask(self, uid: int, prompt: Sequence[int], **params: Any) -> None:
        ids = torch.tensor(list(prompt), dtype=torch.int32)
        self.inbox.append(UserMsg(uid, ids, SamplingParams(**params)))

    def abort(self, uid: int) -> None:
        self.inbox.append(AbortBackendMsg(uid))

    def run(self, steps: int = 10_000) -> None:
        """Step until nothing is left to do."""
        for _ in range(steps):
            if not self.inbox and not self.has_work:
                self.assert_all_is_free()
                return
            self.step()
        raise AssertionError(f"work is left after {steps} steps")

    def assert_all_is_free(self) -> None:
        """Nothing runs: no page is anybody's, no row is taken, no lock is left."""
        assert self.cache_manager.available_pages == self.engine.num_pages
        assert self.table_manager.available_size == self.config.max_running_req
        assert self.cache_manager.prefix_cache.size_info().protected == 0

    def pages_of(self, uid: int) -> list[int]:
        """Positions in the pool of a running request's computed tokens."""
        req = self._on_device[uid]
        return self.engine.page_table[req.table_idx, : req.cached_len].tolist()


def write_small_model(folder: Path, eos: int | list[int] = EOS) -> Path:
    """One layer, 40 tokens, random weights: a real model that takes well under a millisecond a step."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=256,
        eos_token_id=EOS,
        bos_token_id=None,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config)
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.8)
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": eos}), encoding="utf-8")
    return folder
