"""What an engine is made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from minisgl.distributed.info import DistributedInfo
from minisgl.engine.graph import sizes_to_capture
from minisgl.models.config import ModelConfig
from minisgl.utils.device import default_device
from minisgl.utils.hf import load_hf_config, resolve_model


@dataclass(frozen=True)
class EngineConfig:
    """model_path: a model folder in Hugging Face's layout, or the name of a repository of the hub.
    tp_info: this process's rank.
    dtype: of weights, activations and KV.
    attention_backend: "torch", "fi", "fa", two of them as "fa,fi" (prefill, decode), or "auto" by device.
    moe_backend: "torch", "fused" or "auto"; only models with experts have one.
    page_size: tokens a page of the KV pool.
    max_running_req: requests on the device at once.
    memory_ratio: share of the device's memory, free before the weights are loaded, for weights and KV
    together.
    num_page_override: pages of the KV pool, whatever memory there is.
    max_seq_len_override: tokens a request may have, prompt and answer; the model's own limit if None.
    cuda_graph_bs: batch sizes that decoding is captured for as CUDA graphs; on the CPU the same steps are
    taken with a recorded call. None: chosen by cuda_graph_max_bs.
    cuda_graph_max_bs: the largest such size; 0 captures nothing. None: max_running_req, up to 160, on a GPU
    and 0 on the CPU, where there are no launches to save.
    device: where to run; the GPU if there is one.
    distributed_init_method, distributed_timeout: where ranks meet, and for how many seconds they wait.
    """

    model_path: str
    tp_info: DistributedInfo
    dtype: torch.dtype
    attention_backend: str = "auto"
    moe_backend: str = "auto"
    page_size: int = 1
    max_running_req: int = 256
    memory_ratio: float = 0.9
    num_page_override: int | None = None
    max_seq_len_override: int | None = None
    cuda_graph_bs: tuple[int, ...] | None = None
    cuda_graph_max_bs: int | None = None
    device: torch.device | None = None
    distributed_init_method: str = "tcp://127.0.0.1:2333"
    distributed_timeout: float = 60.0

    def __post_init__(self) -> None:
        for name in ("page_size", "max_running_req", "num_page_override", "max_seq_len_override"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"EngineConfig.{name}={value}: give at least 1")
        if self.cuda_graph_max_bs is not None and self.cuda_graph_max_bs < 0:
            raise ValueError(f"EngineConfig.cuda_graph_max_bs={self.cuda_graph_max_bs}: give 0 or more")
        if self.cuda_graph_bs is not None and any(size < 1 for size in self.cuda_graph_bs):
            raise ValueError(f"EngineConfig.cuda_graph_bs={self.cuda_graph_bs}: sizes are at least 1")
        if not 0.0 < self.memory_ratio <= 1.0:
            raise ValueError(f"EngineConfig.memory_ratio={self.memory_ratio}: give a share in (0, 1]")

    @cached_property
    def model_folder(self) -> Path:
        return resolve_model(self.model_path)

    @cached_property
    def model_config(self) -> ModelConfig:
        return ModelConfig.from_hf(load_hf_config(self.model_folder))

    @cached_property
    def torch_device(self) -> torch.device:
        return self.device if self.device is not None else default_device(self.tp_info.rank)

    @property
    def graph_sizes(self) -> tuple[int, ...]:
        """Batch sizes to capture, ascending; empty for none."""
        if self.cuda_graph_bs is not None:
            return tuple(sorted(set(self.cuda_graph_bs)))
        largest = self.cuda_graph_max_bs
        if largest is None:
            largest = min(self.max_running_req, 160) if self.torch_device.type == "cuda" else 0
        return sizes_to_capture(largest)

    @property
    def max_seq_len(self) -> int:
        """Tokens a request may have; ValueError if more are asked for than the model has positions."""
        limit = self.model_config.rotary_config.max_position
        wanted = self.max_seq_len_override if self.max_seq_len_override is not None else limit
        if wanted > limit:
            raise ValueError(f"max_seq_len_override={wanted}, but the model has {limit} positions")
        return wanted
